"""An encoder that is to be made, as a TOML file or a name says it."""

import tomllib
from pathlib import Path
from typing import Any

import pydantic

from encoder.config import EncoderConfig, LayerShape, usual_intermediate_size
from encoder.errors import ConfigError, did_you_mean

# Layers, hidden size, heads: those of Turc et al. 2019 ("Well-Read Students Learn Better", table 1).
BUILTIN: dict[str, tuple[int, int, int]] = {
    "tiny": (2, 128, 2),
    "mini": (4, 256, 4),
    "small": (4, 512, 8),
    "medium": (8, 512, 8),
    "base": (12, 768, 12),
}
REQUIRED = ("num_hidden_layers", "hidden_size", "num_attention_heads")
# What the tokenizer decides, or what follows from the rest.
NOT_SAID = frozenset({"family", "vocab_size", "pad_token_id", "position_offset", "layers", "classifier"})
LAYER_KEYS = frozenset(LayerShape.model_fields) - {"heads", "attention_norm"}
KNOWN = frozenset(REQUIRED) | LAYER_KEYS | (frozenset(EncoderConfig.model_fields) - NOT_SAID)


def is_shape(source: str) -> bool:
    """Whether ``source`` names an encoder that is to be made, rather than one that is there."""
    return source in BUILTIN or source.lower().endswith(".toml")


def read_shape(source: str, *, vocab_size: int, option: str) -> EncoderConfig:
    """The encoder that ``source`` describes, a TOML file or a built-in name.

    Its keys are ``num_hidden_layers``, ``hidden_size``, ``num_attention_heads``, those of a layer, alike for
    all of them, and of ``EncoderConfig``. Unless it says otherwise, there are 512 positions, and the
    feed-forward block is as wide as usual.

    Raises:
        ConfigError: no such file or name, or all that is wrong with it; ``option`` is what it was given by.
    """
    if source in BUILTIN:
        return _make(dict(zip(REQUIRED, BUILTIN[source], strict=True)), source, vocab_size)
    path = Path(source).expanduser()
    if not source.lower().endswith(".toml"):
        raise ConfigError(
            f"{option} {source}: no such encoder; expected a .toml file or one of {', '.join(BUILTIN)}"
            f"{did_you_mean(source, BUILTIN)}"
        )
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise ConfigError(f"{option} {source}: cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{option} {source}: not a TOML file: {error}") from error
    problems, stand_ins = _wrong_keys(values, source)
    if not problems:
        return _make(values, source, vocab_size)
    known = {key: value for key, value in values.items() if key in KNOWN}
    try:
        _make(known | stand_ins, source, vocab_size, is_whole=not stand_ins)
    except ConfigError as error:
        problems += str(error).splitlines()
    raise ConfigError.from_problems(problems)


def _wrong_keys(values: dict[str, Any], source: str) -> tuple[list[str], dict[str, Any]]:
    """What is wrong with the names, and numbers in the place of those that have to be there and are not."""
    problems, meant = [], ""
    for key in values:
        if key not in KNOWN:
            hint = did_you_mean(key, KNOWN)
            meant += hint
            problems.append(
                f"{source}: unknown key {key!r}{hint or '; known are ' + ', '.join(sorted(KNOWN))}"
            )
    stand_ins = {key: 1 for key in REQUIRED if not _is_count(values.get(key))}
    for key in stand_ins:
        if key in values:
            problems.append(f"{source}: {key} is {values[key]!r}; expected a whole number above 0")
        elif f"{key!r}" not in meant:
            problems.append(f"{source}: {key} is missing")
    return problems, stand_ins


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _make(values: dict[str, Any], source: str, vocab_size: int, *, is_whole: bool = True) -> EncoderConfig:
    """The encoder of ``values``; if that ``is_whole`` not, only what is wrong with each is told."""
    hidden, heads = values["hidden_size"], values["num_attention_heads"]
    if is_whole and "head_size" not in values and hidden % heads:
        raise ConfigError(
            f"{source}: hidden_size {hidden} is not a multiple of num_attention_heads {heads}; choose "
            "others, or say head_size"
        )
    usual = usual_intermediate_size(hidden, gated=values.get("gated") is True)
    layer = {"head_size": max(1, hidden // heads), "intermediate_size": usual}
    layer |= {key: value for key, value in values.items() if key in LAYER_KEYS}
    whole = {key: value for key, value in values.items() if key not in LAYER_KEYS and key not in REQUIRED}
    defaults = {
        "family": "bert",
        "embedding_size": hidden,
        "max_position_embeddings": 512,
        "type_vocab_size": 2,
    }
    try:
        shape = LayerShape.model_validate({"heads": tuple(range(heads)), **layer})
        return EncoderConfig.model_validate(
            defaults
            | whole
            | {
                "hidden_size": hidden,
                "vocab_size": vocab_size,
                "layers": (shape,) * values["num_hidden_layers"],
            }
        )
    except pydantic.ValidationError as error:
        problems = []
        for one in error.errors():
            where = ".".join(str(part) for part in one["loc"])
            if not (where or is_whole):
                continue
            found = f" (found {one['input']!r})" if where else ""
            problems.append(f"{source}: {where + ': ' if where else ''}{_plain(one['msg'])}{found}")
        raise ConfigError.from_problems(problems) from error


def _plain(message: str) -> str:
    message = message.removeprefix("Value error, ")
    return message[:1].lower() + message[1:]
