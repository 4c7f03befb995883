"""A tokenizer folder as Hugging Face lays it out, read the way Transformers' fast tokenizers read it.

``tokenizer.json`` holds the whole tokenizer, or ``vocab.txt`` the WordPiece vocabulary alone;
``tokenizer_config.json`` may overrule ``tokenizer.json`` on lower-casing, accents and Chinese characters
(BERT's classes) and the leading space (RoBERTa's class).
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
from encoder.tokenizer_files import (
    BERT_TOKENS,
    CONFIG_FILE,
    ROBERTA_TOKENS,
    SPECIAL_NAMES,
    TOKENIZER_FILE,
    VOCAB_FILE,
    TokenizerFiles,
    read_json,
    read_tokenizer_files,
    token_text,
)

# Vocabularies that only other libraries can read, or that hold half of a tokenizer.
FOREIGN_FILES = (
    "sentencepiece.bpe.model", "spiece.model", "spm.model", "tokenizer.model", "vocab.json", "merges.txt",
    "bpe.codes",
)  # fmt: skip


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
    files = read_tokenizer_files(folder)
    backend, notes = _read_backend(files)
    _add_tokens_(backend, files)
    backend.encode_special_tokens = bool(files.config.get("split_special_tokens", False))
    special_tokens = _names_in_vocabulary(backend, files.named_tokens)
    if backend.post_processor is None and (files.is_bert or files.is_roberta):
        _frame_with_special_tokens_(backend, folder, special_tokens, segments=files.is_bert)
    _check_unknown_words(backend, folder)
    return TokenizerFolder(
        backend=backend,
        special_tokens=special_tokens,
        settings=files.settings(special_tokens),
        model_max_length=files.model_max_length,
        truncation_side=files.config.get("truncation_side", "right"),
        uses_token_types=files.uses_token_types,
        family=files.family,
        notes=tuple(notes),
    )


def _read_backend(files: TokenizerFiles) -> tuple[tokenizers.Tokenizer, list[str]]:
    """The library's tokenizer, and a sentence for each setting that the folder's files disagree on."""
    folder = files.folder
    if (folder / TOKENIZER_FILE).is_file():
        backend = _from_tokenizer_json(folder / TOKENIZER_FILE)
        backend.no_truncation()
        backend.no_padding()
        return backend, _follow_config_(backend, files)
    if (folder / VOCAB_FILE).is_file():
        return _from_vocab(files), []
    raise CheckpointError(_nothing_to_read(folder))


def _from_tokenizer_json(path: Path) -> tokenizers.Tokenizer:
    try:
        return tokenizers.Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare Exception
        raise CheckpointError(
            f"{path}: not a tokenizer that the tokenizers library can read ({error})"
        ) from error


def _from_vocab(files: TokenizerFiles) -> tokenizers.Tokenizer:
    """BERT's WordPiece around a vocabulary file, one token a line."""
    path, config = files.folder / VOCAB_FILE, files.config
    if files.tokenizer_class and not files.is_bert:
        raise CheckpointError(
            f"{files.folder}: its {VOCAB_FILE} belongs to a {files.tokenizer_class}, which enc cannot "
            f"rebuild from the vocabulary alone: {_how_to_convert(files.folder, files.folder)}"
        )
    unk_token = token_text(files.named_tokens.get("unk_token", "[UNK]"))
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


def _follow_config_(backend: tokenizers.Tokenizer, files: TokenizerFiles) -> list[str]:
    """Overrule ``tokenizer.json`` where the tokenizer class does, by its defaults for what is not said.

    Returns a sentence for each choice.
    """
    config, notes = files.config, []
    normalizer, pre_tokenizer = backend.normalizer, backend.pre_tokenizer
    if files.is_bert and isinstance(normalizer, normalizers.BertNormalizer):
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
    if files.tokenizer_class == "RobertaTokenizer" and isinstance(pre_tokenizer, pre_tokenizers.ByteLevel):
        value = config.get("add_prefix_space", False)
        if pre_tokenizer.add_prefix_space != value:
            notes.append(_overruled("add_prefix_space", not value, "add_prefix_space", value, config))
            pre_tokenizer.add_prefix_space = value
        backend.pre_tokenizer = pre_tokenizer
    return notes


def _overruled(attribute: str, found: object, key: str, value: object, config: Mapping[str, Any]) -> str:
    source = f"{CONFIG_FILE} says" if key in config else "the default of its tokenizer class is"
    return (
        f"{TOKENIZER_FILE} has {attribute} {json.dumps(found)} but {source} {key} {json.dumps(value)}; "
        "the latter is used, as in Transformers"
    )


def _add_tokens_(backend: tokenizers.Tokenizer, files: TokenizerFiles) -> None:
    """Add what the config files list and the tokenizer lacks: those with ids, then the named, the extra."""
    named = files.named_tokens
    decoder: Mapping[str, Any] = files.config.get("added_tokens_decoder", {})
    tokens = [_added_token(decoder[index]) for index in sorted(decoder, key=int)]
    if not decoder:
        extra_ids = read_json(files.folder / "added_tokens.json")
        special = {token_text(token) for token in named.values()}
        tokens += [
            AddedToken(content, normalized=content not in special, special=content in special)
            for content in sorted(extra_ids, key=lambda token: int(extra_ids[token]))
        ]
    said = files.config.keys() | files.special_map.keys()
    tokens += [
        _added_token(token)
        for name, token in named.items()
        # A default that the vocabulary lacks would get an id that the model lacks.
        if name in said or backend.token_to_id(token_text(token)) is not None
    ]
    tokens += [_added_token(token) for token in files.extra_tokens]
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


def _names_in_vocabulary(backend: tokenizers.Tokenizer, named: Mapping[str, Any]) -> dict[str, str]:
    """The special tokens by name; one that no file names is guessed: BERT's spelling, then RoBERTa's."""
    found = {}
    for name in SPECIAL_NAMES:
        spellings = [named[name]] if name in named else [BERT_TOKENS.get(name), ROBERTA_TOKENS[name]]
        for token in spellings:
            if token is not None and backend.token_to_id(token_text(token)) is not None:
                found[name] = token_text(token)
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
