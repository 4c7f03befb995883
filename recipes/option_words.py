"""Options in words: what one may be, and what is wrong with the values that were given for a config.

Whoever asks says how a field is called where its value came from: an option, a key of a file.
"""

import re
import typing
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal

import annotated_types
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from encoder.errors import did_you_mean

BOUNDS: tuple[tuple[type[Any], str, str], ...] = (
    (annotated_types.Gt, "gt", "above"),
    (annotated_types.Ge, "ge", "at least"),
    (annotated_types.Lt, "lt", "below"),
    (annotated_types.Le, "le", "at most"),
)
# What other tools call these, so that a guess is answered with the right name.
ALSO_CALLED = {
    "epochs": "num_epochs",
    "num_train_epochs": "num_epochs",
    "lr": "learning_rate",
    "bs": "batch_size",
    "per_device_train_batch_size": "batch_size",
    "gradient_accumulation_steps": "accumulation_steps",
    "max_seq_length": "max_length",
    "max_len": "max_length",
    "patience": "early_stopping_patience",
    "dataset": "data",
    "train_file": "data",
    "model_name_or_path": "model",
    "output_dir": "output",
    "out": "output",
    "metric_for_best_model": "best_metric",
    "lr_scheduler_type": "schedule",
    "warmup": "warmup_ratio",
    "freeze_layers": "points",  # of a sweep, which has no other
    "train_last": "points",
}


def suggest(name: str, known: Iterable[str]) -> str:
    """``"; did you mean 'num_epochs'?"`` where ``name`` is another tool's word for it, or nearly it."""
    known = list(known)
    other = ALSO_CALLED.get(name.replace("-", "_"))
    if other in known:
        return f"; did you mean {other!r}?"
    return did_you_mean(name.replace("-", "_"), known)


def describe_expected(field: FieldInfo) -> str:
    """What a field's value may be, as ``a number above 0 and at most 1``."""
    kind = kind_of(field)
    if typing.get_origin(kind) is Literal:
        return "one of " + ", ".join(str(choice) for choice in typing.get_args(kind))
    if typing.get_origin(kind) is tuple:
        return f"{_describe_items(field)}, with commas between" if has_commas(field) else "a list of texts"
    words = {int: "a whole number", float: "a number", bool: "true or false", Path: "a path"}
    bounds = [
        f"{word} {getattr(constraint, key):,}"
        for constraint in field.metadata
        for bound, key, word in BOUNDS
        if isinstance(constraint, bound)
    ]
    return " ".join([words.get(kind, "a text that is not empty"), " and ".join(bounds)]).strip()


def _describe_items(field: FieldInfo) -> str:
    """What the items of a list may be; see ``recipes.fields.split_at_commas``."""
    if choices := choices_of(field):
        return "names out of " + ", ".join(choices)
    constraints = getattr(typing.get_args(kind_of(field))[0], "__metadata__", ())
    from_zero = any(isinstance(one, annotated_types.Ge) for one in constraints)
    return f"whole numbers {'from 0 up' if from_zero else 'above 0'}"


def choices_of(field: FieldInfo) -> tuple[str, ...]:
    """The values a field may have, or each item of a list; empty where they are not names."""
    kind = kind_of(field)
    if typing.get_origin(kind) is tuple:
        kind = typing.get_args(kind)[0]
    return typing.get_args(kind) if typing.get_origin(kind) is Literal else ()


def has_commas(field: FieldInfo) -> bool:
    """Whether a list is typed as one word with commas, and not by repeating the option."""
    return bool(extra_of(field).get("commas"))


def kind_of(field: FieldInfo) -> Any:
    """The type of a field, ``None`` and what is annotated to it left out."""
    arguments = [kind for kind in typing.get_args(field.annotation) if kind is not NoneType]
    kind = field.annotation
    if NoneType in typing.get_args(field.annotation) and len(arguments) == 1:
        kind = arguments[0]
    return typing.get_args(kind)[0] if typing.get_origin(kind) is Annotated else kind


def extra_of(field: FieldInfo) -> dict[str, Any]:
    """What a field says of itself beside its type and help text, such as its panel."""
    return dict(field.json_schema_extra) if isinstance(field.json_schema_extra, dict) else {}


def explain(
    config: type[BaseModel],
    error: ValidationError,
    call: Callable[[str], str],
    misspelt: Collection[str] = (),
) -> list[str]:
    """The problems that pydantic found, in our words; ``call`` gives the name that a field is called by.

    Fields that are ``misspelt`` were told already: that they are missing is not told as well.
    """
    return [
        problem
        for detail in error.errors()
        if not _is_told(detail, misspelt)
        for problem in _explain_one(config, detail, call)
    ]


def _is_told(detail: ErrorDetails, misspelt: Collection[str]) -> bool:
    """Whether it is about a field that is not there only because it was spelt otherwise."""
    if detail["loc"]:
        return detail["type"] == "missing" and detail["loc"][0] in misspelt
    return any(f"`{name}`" in detail["msg"] for name in misspelt)


def _explain_one(config: type[BaseModel], detail: ErrorDetails, call: Callable[[str], str]) -> list[str]:
    if not detail["loc"]:  # of the model as a whole: our own sentences, fields in backticks, a line each
        text = str(detail["ctx"]["error"]) if "ctx" in detail else detail["msg"]
        return re.sub("`([a-z_]+)`", lambda match: call(match[1]), text).splitlines()
    name = str(detail["loc"][0])
    if detail["type"] == "too_short" and detail["input"]:  # only because of its wrong items
        return []
    field = config.model_fields[name]
    if detail["type"] == "missing":
        return [f"{call(name)} is missing: {_first_lower(field.description or '')}"]
    value = detail["input"]
    hint = did_you_mean(value, choices_of(field)) if isinstance(value, str) else ""
    return [f"{call(name)} is {value!r}; expected {describe_expected(field)}{hint}"]


def _first_lower(text: str) -> str:
    return text[:1].lower() + text[1:]
