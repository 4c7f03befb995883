"""A tokenizer folder as Hugging Face lays it out, read the way Transformers' fast tokenizers read it.

``tokenizer.json`` holds the whole tokenizer, or ``vocab.txt`` the WordPiece vocabulary alone;
``tokenizer_config.json`` names the special tokens and may overrule ``tokenizer.json`` on lower-casing,
accents and Chinese characters (BERT's classes) and the leading space (RoBERTa's class).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import AddedToken, normalizers, pre_tokenizers, processors
from tokenizers.models import WordPiece

from encoder.errors import CheckpointError

TOKENIZER_FILE = "tokenizer.json"
VOCAB_FILE = "vocab.txt"
CONFIG_FILE = "tokenizer_config.json"
# Vocabularies that only other libraries can read, or that hold half of a tokenizer.
FOREIGN_FILES = (
    "sentencepiece.bpe.model", "spiece.model", "spm.model", "tokenizer.model", "vocab.json", "merges.txt",
    "bpe.codes",
)  # fmt: skip

BERT_CLASSES = {"BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer"}
ROBERTA_CLASSES = {"RobertaTokenizer", "XLMRobertaTokenizer", "CamembertTokenizer"}
CLASS_OF_FAMILY = {
    "bert": "BertTokenizer",
    "distilbert": "DistilBertTokenizer",
    "electra": "ElectraTokenizer",
    "roberta": "RobertaTokenizer",
    "xlm-roberta": "XLMRobertaTokenizer",
    "camembert": "CamembertTokenizer",
}
SPECIAL_NAMES = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
BERT_TOKENS = {
    "unk_token": "[UNK]", "sep_token": "[SEP]", "pad_token": "[PAD]", "cls_token": "[CLS]",
    "mask_token": "[MASK]",
}  # fmt: skip
ROBERTA_TOKENS = {
    "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "sep_token": "</s>", "pad_token": "<pad>",
    "cls_token": "<s>", "mask_token": "<mask>",
}  # fmt: skip
# Entries of tokenizer_config.json that tokenizer.json already holds, or that say where the original was.
STALE_KEYS = {
    "added_tokens_decoder", "auto_map", "backend", "extra_special_tokens", "init_inputs", "is_local",
    "local_files_only", "max_length", "name_or_path", "never_split", "pad_to_multiple_of",
    "special_tokens_map_file", "stride", "tokenizer_file", "truncation_strategy", "vocab_file",
}  # fmt: skip
FAMILIES_WITHOUT_TYPES = ("distilbert", "modernbert")
# Transformers writes 1e30 for "no limit".
LARGEST_SANE_LENGTH = 1_000_000


@dataclass(frozen=True)
class TokenizerFolder:
    """What a folder says: the tokenizer without truncation and padding, and the settings beside it.

    ``special_tokens`` maps names such as ``cls_token`` to tokens that the vocabulary holds. ``settings`` is
    what a saved ``tokenizer_config.json`` should hold. ``notes`` are sentences on choices worth a user's eye.
    """

    backend: tokenizers.Tokenizer
    special_tokens: Mapping[str, str]
    settings: Mapping[str, Any]
    model_max_length: int | None
    truncation_side: str
    uses_token_types: bool
    family: str | None
    notes: tuple[str, ...]


def read_tokenizer_folder(folder: Path) -> TokenizerFolder:
    """Read the tokenizer of a model folder.

    Raises ``CheckpointError`` when there is none, or none that can be read without other libraries.
    """
    # null means: as if not said
    config = {key: value for key, value in _read_json(folder / CONFIG_FILE).items() if value is not None}
    model_config = _read_json(folder / "config.json")
    special_map = {} if config.get("added_tokens_decoder") else _read_json(folder / "special_tokens_map.json")
    _check_settings(config, folder)
    family: str | None = model_config.get("model_type")
    tokenizer_class = config.get("tokenizer_class") or model_config.get("tokenizer_class")
    tokenizer_class = (tokenizer_class or CLASS_OF_FAMILY.get(family or "", "")).removesuffix("Fast")

    named = {**_default_tokens(tokenizer_class)}
    for source in (config, special_map):
        named |= {name: source[name] for name in SPECIAL_NAMES if source.get(name)}
    notes: list[str] = []
    if (folder / TOKENIZER_FILE).is_file():
        backend = _from_tokenizer_json(folder / TOKENIZER_FILE)
        backend.no_truncation()
        backend.no_padding()
        _follow_config_(backend, config, tokenizer_class, notes)
    elif (folder / VOCAB_FILE).is_file():
        backend = _from_vocab(
            folder / VOCAB_FILE, config, tokenizer_class, _text(named.get("unk_token", "[UNK]"))
        )
    else:
        raise CheckpointError(_nothing_to_read(folder))

    _add_tokens_(backend, folder, config, special_map, named)
    backend.encode_special_tokens = bool(config.get("split_special_tokens", False))
    special_tokens = _names_in_vocabulary(backend, named)
    if backend.post_processor is None and tokenizer_class in BERT_CLASSES | ROBERTA_CLASSES:
        _frame_with_special_tokens_(backend, folder, special_tokens, segments=tokenizer_class in BERT_CLASSES)
    _check_unknown_words(backend, folder)

    inputs = config.get("model_input_names")
    if _number_of_types(model_config) in (0, 1):
        # A model without a second segment, whatever its tokenizer says: klue/roberta uses BERT's.
        uses_token_types = False
    elif inputs is None:
        uses_token_types = tokenizer_class not in ROBERTA_CLASSES
    else:
        uses_token_types = "token_type_ids" in inputs
    extra = _extra_tokens(config, special_map)
    settings = {key: value for key, value in config.items() if key not in STALE_KEYS} | special_tokens
    if extra:
        settings["additional_special_tokens"] = [_text(token) for token in extra]
    length = config.get("model_max_length")
    return TokenizerFolder(
        backend=backend,
        special_tokens=special_tokens,
        settings=settings,
        model_max_length=int(length) if length and 0 < length < LARGEST_SANE_LENGTH else None,
        truncation_side=config.get("truncation_side", "right"),
        uses_token_types=uses_token_types,
        family=family,
        notes=tuple(notes),
    )


def _number_of_types(model_config: dict[str, Any]) -> int | None:
    """How many segments the model of a config.json tells apart, as far as it says so."""
    if model_config.get("model_type") in FAMILIES_WITHOUT_TYPES:
        return 0
    own = (model_config.get("enc") or {}).get("encoder") or {}
    number: int | None = model_config.get("type_vocab_size", own.get("type_vocab_size"))
    return number


def _read_json(path: Path) -> dict[str, Any]:
    """The object in ``path``, empty when there is no such file."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path}: cannot be read as JSON ({error})") from error
    if not isinstance(content, dict):
        raise CheckpointError(f"{path}: expected a JSON object, found {type(content).__name__}")
    return content


def _check_settings(config: Mapping[str, Any], folder: Path) -> None:
    """Refuse settings of a type that nothing can be done with, all at once."""
    expected: dict[str, tuple[type, ...]] = {
        "tokenizer_class": (str,),
        "do_lower_case": (bool,),
        "strip_accents": (bool,),
        "tokenize_chinese_chars": (bool,),
        "add_prefix_space": (bool,),
        "model_max_length": (int, float),
        "model_input_names": (list,),
        "added_tokens_decoder": (dict,),
    }
    problems = [
        f"{folder / CONFIG_FILE}: {key} is {config[key]!r}; expected {' or '.join(t.__name__ for t in types)}"
        for key, types in expected.items()
        if key in config and not isinstance(config[key], types)
    ]
    if config.get("truncation_side", "right") not in ("left", "right"):
        side = config["truncation_side"]
        problems.append(f"{folder / CONFIG_FILE}: truncation_side is {side!r}; expected left or right")
    if problems:
        raise CheckpointError.from_problems(problems)


def _default_tokens(tokenizer_class: str) -> dict[str, str]:
    if tokenizer_class in BERT_CLASSES:
        return BERT_TOKENS
    return ROBERTA_TOKENS if tokenizer_class in ROBERTA_CLASSES else {}


def _from_tokenizer_json(path: Path) -> tokenizers.Tokenizer:
    try:
        return tokenizers.Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare Exception
        raise CheckpointError(
            f"{path}: not a tokenizer that the tokenizers library can read ({error})"
        ) from error


def _from_vocab(
    path: Path, config: Mapping[str, Any], tokenizer_class: str, unk_token: str
) -> tokenizers.Tokenizer:
    """BERT's WordPiece around a vocabulary file, one token a line."""
    if tokenizer_class and tokenizer_class not in BERT_CLASSES:
        raise CheckpointError(
            f"{path.parent}: its {VOCAB_FILE} belongs to a {tokenizer_class}, which enc cannot rebuild from "
            f"the vocabulary alone: {_how_to_convert(path.parent, path.parent)}"
        )
    try:
        model = WordPiece.from_file(str(path), unk_token=unk_token)
    except Exception as error:  # the library raises bare Exception
        raise CheckpointError(f"{path}: cannot be read as a WordPiece vocabulary ({error})") from error
    backend = tokenizers.Tokenizer(model)
    backend.normalizer = normalizers.BertNormalizer(
        lowercase=config.get("do_lower_case", True),
        strip_accents=config.get("strip_accents"),
        handle_chinese_chars=config.get("tokenize_chinese_chars", True),
    )
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = tokenizers.decoders.WordPiece(prefix="##")
    return backend


def _follow_config_(
    backend: tokenizers.Tokenizer, config: Mapping[str, Any], tokenizer_class: str, notes: list[str]
) -> None:
    """Overrule ``tokenizer.json`` where the tokenizer class does, by its defaults for what is not said."""
    normalizer, pre_tokenizer = backend.normalizer, backend.pre_tokenizer
    if tokenizer_class in BERT_CLASSES and isinstance(normalizer, normalizers.BertNormalizer):
        wanted = {
            "lowercase": ("do_lower_case", config.get("do_lower_case", True)),
            "strip_accents": ("strip_accents", config.get("strip_accents")),
            "handle_chinese_chars": ("tokenize_chinese_chars", config.get("tokenize_chinese_chars", True)),
        }
        for attribute, (key, value) in wanted.items():
            if getattr(normalizer, attribute) != value:
                notes.append(_overruled(attribute, getattr(normalizer, attribute), key, value, config))
                setattr(normalizer, attribute, value)
        backend.normalizer = normalizer
    if tokenizer_class == "RobertaTokenizer" and isinstance(pre_tokenizer, pre_tokenizers.ByteLevel):
        value = config.get("add_prefix_space", False)
        if pre_tokenizer.add_prefix_space != value:
            notes.append(_overruled("add_prefix_space", not value, "add_prefix_space", value, config))
            pre_tokenizer.add_prefix_space = value
        backend.pre_tokenizer = pre_tokenizer


def _overruled(attribute: str, found: object, key: str, value: object, config: Mapping[str, Any]) -> str:
    source = f"{CONFIG_FILE} says" if key in config else "the default of its tokenizer class is"
    return (
        f"{TOKENIZER_FILE} has {attribute} {json.dumps(found)} but {source} {key} {json.dumps(value)}; "
        "the latter is used, as in Transformers"
    )


def _extra_tokens(config: Mapping[str, Any], special_map: Mapping[str, Any]) -> list[Any]:
    extra: list[Any] = []
    for source in (config, special_map):
        for key in ("extra_special_tokens", "additional_special_tokens"):
            value = source.get(key) or []
            extra += value.values() if isinstance(value, dict) else value
    return list({_text(token): token for token in extra}.values())


def _add_tokens_(
    backend: tokenizers.Tokenizer,
    folder: Path,
    config: Mapping[str, Any],
    special_map: Mapping[str, Any],
    named: Mapping[str, Any],
) -> None:
    """Add what the config files list and the tokenizer lacks: those with ids, then the named, the extra."""
    decoder: Mapping[str, Any] = config.get("added_tokens_decoder", {})
    tokens = [_added_token(decoder[index]) for index in sorted(decoder, key=int)]
    if not decoder:
        extra_ids = _read_json(folder / "added_tokens.json")
        special = {_text(token) for token in named.values()}
        tokens += [
            AddedToken(content, normalized=content not in special, special=content in special)
            for content in sorted(extra_ids, key=lambda token: int(extra_ids[token]))
        ]
    said = config.keys() | special_map.keys()
    tokens += [
        _added_token(token)
        for name, token in named.items()
        # A default that the vocabulary lacks would get an id that the model lacks.
        if name in said or backend.token_to_id(_text(token)) is not None
    ]
    tokens += [_added_token(token) for token in _extra_tokens(config, special_map)]
    known = {token.content for token in backend.get_added_tokens_decoder().values()}
    for token in tokens:
        if token.content not in known:
            known.add(token.content)
            backend.add_special_tokens([token]) if token.special else backend.add_tokens([token])


def _added_token(token: Any) -> AddedToken:
    if isinstance(token, str):
        return AddedToken(token, special=True, normalized=False)
    flags = {key: value for key, value in token.items() if key not in ("__type", "content", "id")}
    return AddedToken(token["content"], **({"special": True} | flags))


def _text(token: Any) -> str:
    """The token itself, where a config may hold a string or an object with flags."""
    return token if isinstance(token, str) else str(token["content"])


def _names_in_vocabulary(backend: tokenizers.Tokenizer, named: Mapping[str, Any]) -> dict[str, str]:
    """The special tokens by name; one that no file names is guessed: BERT's spelling, then RoBERTa's."""
    found = {}
    for name in SPECIAL_NAMES:
        spellings = [named[name]] if name in named else [BERT_TOKENS.get(name), ROBERTA_TOKENS[name]]
        for token in spellings:
            if token is not None and backend.token_to_id(_text(token)) is not None:
                found[name] = _text(token)
                break
    return found


def _frame_with_special_tokens_(
    backend: tokenizers.Tokenizer, folder: Path, special_tokens: Mapping[str, str], *, segments: bool
) -> None:
    """``[CLS] A [SEP] B [SEP]`` with B in segment 1, or ``<s> A </s></s> B </s>`` all in segment 0."""
    missing = [name for name in ("cls_token", "sep_token") if name not in special_tokens]
    if missing:
        raise CheckpointError(
            f"{folder}: the vocabulary holds no {' and no '.join(missing)}; is it complete?"
        )
    cls, sep = special_tokens["cls_token"], special_tokens["sep_token"]
    pair = f"{cls}:0 $A:0 {sep}:0 $B:1 {sep}:1" if segments else f"{cls}:0 $A:0 {sep}:0 {sep}:0 $B:0 {sep}:0"
    backend.post_processor = processors.TemplateProcessing(
        single=f"{cls}:0 $A:0 {sep}:0",
        pair=pair,
        special_tokens=[(token, backend.token_to_id(token)) for token in sorted({cls, sep})],
    )


def _check_unknown_words(backend: tokenizers.Tokenizer, folder: Path) -> None:
    """A vocabulary without its unknown token fails at the first unknown word; better now than later."""
    try:
        backend.encode("enc \U0010fffd")
    except Exception as error:  # the library raises bare Exception
        raise CheckpointError(f"{folder}: the tokenizer cannot encode an unknown word ({error})") from error


def _nothing_to_read(folder: Path) -> str:
    if not folder.is_dir():
        return f"{folder}: no such folder"
    foreign = [name for name in FOREIGN_FILES if (folder / name).is_file()]
    if foreign:
        found = ", ".join(foreign)
        how = _how_to_convert(folder, folder)
        return f"{folder}: has {found} but no {TOKENIZER_FILE}, which enc needs: {how}"
    return (
        f"{folder}: no tokenizer; expected {TOKENIZER_FILE} or {VOCAB_FILE}, with {CONFIG_FILE}. If the "
        f"model has a tokenizer in another format: {_how_to_convert('MODEL', folder)}"
    )


def _how_to_convert(source: Path | str, folder: Path) -> str:
    return (
        f"make a {TOKENIZER_FILE} once, where Transformers is installed: "
        f"AutoTokenizer.from_pretrained({str(source)!r}).save_pretrained({str(folder)!r})"
    )
