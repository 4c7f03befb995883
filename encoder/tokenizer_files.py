"""The JSON files of a tokenizer folder as Hugging Face lays it out, and what they leave to its class.

``tokenizer_config.json`` names the special tokens and settings, ``special_tokens_map.json`` and
``added_tokens.json`` do so in older folders, and the model's ``config.json`` says which family it is.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from encoder.errors import CheckpointError

TOKENIZER_FILE = "tokenizer.json"
VOCAB_FILE = "vocab.txt"
CONFIG_FILE = "tokenizer_config.json"

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
class TokenizerFiles:
    """What the files of ``folder`` say beside the vocabulary.

    ``config`` is tokenizer_config.json without what is null, ``special_map`` special_tokens_map.json where it
    counts, ``model_config`` the model's config.json; each is empty where there is no such file.
    """

    folder: Path
    config: Mapping[str, Any]
    special_map: Mapping[str, Any]
    model_config: Mapping[str, Any]

    @property
    def family(self) -> str | None:
        """The model's, as far as its config.json says so."""
        return self.model_config.get("model_type")

    @cached_property
    def tokenizer_class(self) -> str:
        """The name of Transformers' class, without ``Fast``; empty where nothing says which."""
        named: str | None = self.config.get("tokenizer_class") or self.model_config.get("tokenizer_class")
        return (named or CLASS_OF_FAMILY.get(self.family or "", "")).removesuffix("Fast")

    @property
    def is_bert(self) -> bool:
        """Whether it is made as BERT's."""
        return self.tokenizer_class in BERT_CLASSES

    @property
    def is_roberta(self) -> bool:
        """Whether it frames texts as RoBERTa's."""
        return self.tokenizer_class in ROBERTA_CLASSES

    @cached_property
    def named_tokens(self) -> Mapping[str, Any]:
        """Tokens, or objects with flags, by names such as ``cls_token``: the class's own, unless said."""
        named: dict[str, Any] = {}
        if self.is_bert or self.is_roberta:
            named |= BERT_TOKENS if self.is_bert else ROBERTA_TOKENS
        for source in (self.config, self.special_map):
            named |= {name: source[name] for name in SPECIAL_NAMES if source.get(name)}
        return named

    @cached_property
    def extra_tokens(self) -> list[Any]:
        """Further special tokens, which have no name."""
        extra: list[Any] = []
        for source in (self.config, self.special_map):
            for key in ("extra_special_tokens", "additional_special_tokens"):
                value = source.get(key) or []
                extra += value.values() if isinstance(value, dict) else value
        return list({token_text(token): token for token in extra}.values())

    @property
    def model_max_length(self) -> int | None:
        """The longest row in tokens, where there is a limit."""
        length = self.config.get("model_max_length")
        return int(length) if length and 0 < length < LARGEST_SANE_LENGTH else None

    @property
    def uses_token_types(self) -> bool:
        """Whether the second text of a pair has tokens of type 1."""
        if self._number_of_types in (0, 1):
            # A model without a second segment, whatever its tokenizer says: klue/roberta uses BERT's.
            return False
        inputs = self.config.get("model_input_names")
        return not self.is_roberta if inputs is None else "token_type_ids" in inputs

    @property
    def _number_of_types(self) -> int | None:
        """How many segments the model tells apart, as far as its config.json says so."""
        if self.family in FAMILIES_WITHOUT_TYPES:
            return 0
        own = (self.model_config.get("enc") or {}).get("encoder") or {}
        number: int | None = self.model_config.get("type_vocab_size", own.get("type_vocab_size"))
        return number

    def settings(self, special_tokens: Mapping[str, str]) -> dict[str, Any]:
        """What a saved tokenizer_config.json should hold; ``special_tokens`` are those of the vocabulary."""
        settings = {key: value for key, value in self.config.items() if key not in STALE_KEYS}
        settings |= special_tokens
        if self.extra_tokens:
            settings["additional_special_tokens"] = [token_text(token) for token in self.extra_tokens]
        return settings


def read_tokenizer_files(folder: Path) -> TokenizerFiles:
    """Read the JSON files of ``folder``, as far as they are there.

    Raises ``CheckpointError`` for one that is not JSON, and for settings of the wrong type, all at once.
    """
    # null means: as if not said
    config = {key: value for key, value in read_json(folder / CONFIG_FILE).items() if value is not None}
    model_config = read_json(folder / "config.json")
    special_map = {} if config.get("added_tokens_decoder") else read_json(folder / "special_tokens_map.json")
    _check_settings(config, folder)
    return TokenizerFiles(folder, config, special_map, model_config)


def read_json(path: Path) -> dict[str, Any]:
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


def token_text(token: Any) -> str:
    """The token itself, where a config may hold a string or an object with flags."""
    return token if isinstance(token, str) else str(token["content"])


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
