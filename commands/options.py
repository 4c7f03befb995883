"""Options made from a config: each field of a pydantic model is one, declared nowhere else.

Typer is given every value as text; pydantic checks them all, together with those of a TOML file, so that all
mistakes are reported at once and in the words they were typed in.
"""

import inspect
import re
import tomllib
import typing
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, TypeVar

import annotated_types
import typer
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, PydanticUndefined

from encoder.errors import ConfigError, did_you_mean
from recipes.fields import PANELS

Config = TypeVar("Config", bound=BaseModel)

FLAG = " "  # Typer shows <bool> for an option that takes no value, unless it is told otherwise
AsJson = Annotated[
    bool,
    typer.Option(
        "--json",
        metavar=FLAG,
        help="Print the result as JSON instead of tables.",
        rich_help_panel="Output and machine",
    ),
]
ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="A TOML file of these options (batch_size = 16). The command line wins.",
        show_default=False,
        rich_help_panel="Model and data",
    ),
]
METAVARS = {int: "N", float: "X", str: "TEXT", Path: "PATH"}
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


def with_options(config: type[BaseModel]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command an option for each field of ``config``.

    The command is called with ``given``, the values that were typed (text, a list of texts, or a bool) by
    field name, and with its own further parameters.
    """

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        def command(**values: Any) -> None:
            typed = {name: values.pop(name) for name in config.model_fields}
            function({name: value for name, value in typed.items() if value not in (None, [])}, **values)

        own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
        fields = [
            _parameter(name, field) for name, field in sorted(config.model_fields.items(), key=_panel_place)
        ]
        parameters = fields + [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own]
        command.__name__ = function.__name__
        command.__doc__ = function.__doc__
        command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return command

    return decorate


def build_config(config: type[Config], given: Mapping[str, Any], file: Path | None = None) -> Config:
    """``config`` from the options ``given`` and, where they are silent, from the TOML ``file``.

    Raises:
        ConfigError: all that is wrong with either, each with the option or the key it was given by.
    """
    from_file, problems = _read_toml(config, file) if file else ({}, [])

    def call(name: str) -> str:
        if name in from_file and name not in given:
            return f"{file}: {name}"
        return (argument_name(config.model_fields[name]) or option_name(name)).strip("[].")

    try:
        made = config(**(from_file | dict(given)))
    except ValidationError as error:
        for detail in error.errors():
            problems += _explain(config, detail, call)
    if problems:
        raise ConfigError.from_problems(problems)
    return made


def option_name(name: str) -> str:
    """``--batch-size`` of ``batch_size``."""
    return "--" + name.replace("_", "-")


def argument_name(field: FieldInfo) -> str | None:
    """Where a field is given by its place and not by an option, its name in a usage line: ``MODEL...``."""
    return _extra(field).get("argument")


def suggest(name: str, known: Iterable[str]) -> str:
    """``"; did you mean 'num_epochs'?"`` where ``name`` is another tool's word for it, or nearly it."""
    known = list(known)
    other = ALSO_CALLED.get(name.replace("-", "_"))
    if other in known:
        return f"; did you mean {other!r}?"
    return did_you_mean(name.replace("-", "_"), known)


def describe_expected(field: FieldInfo) -> str:
    """What a field's value may be, as ``a number above 0 and at most 1``."""
    kind = _kind(field)
    if typing.get_origin(kind) is Literal:
        return "one of " + ", ".join(str(choice) for choice in typing.get_args(kind))
    if typing.get_origin(kind) is tuple:
        return f"{_describe_items(field)}, with commas between" if _has_commas(field) else "a list of texts"
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
    if choices := _choices(field):
        return "names out of " + ", ".join(choices)
    constraints = getattr(typing.get_args(_kind(field))[0], "__metadata__", ())
    from_zero = any(isinstance(one, annotated_types.Ge) for one in constraints)
    return f"whole numbers {'from 0 up' if from_zero else 'above 0'}"


def _choices(field: FieldInfo) -> tuple[str, ...]:
    """The values a field may have, or each item of a list; empty where they are not names."""
    kind = _kind(field)
    if typing.get_origin(kind) is tuple:
        kind = typing.get_args(kind)[0]
    return typing.get_args(kind) if typing.get_origin(kind) is Literal else ()


def _has_commas(field: FieldInfo) -> bool:
    """Whether a list is typed as one word with commas, and not by repeating the option."""
    return bool(_extra(field).get("commas"))


def _kind(field: FieldInfo) -> Any:
    """The type of a field, ``None`` and what is annotated to it left out."""
    arguments = [kind for kind in typing.get_args(field.annotation) if kind is not NoneType]
    kind = field.annotation
    if NoneType in typing.get_args(field.annotation) and len(arguments) == 1:
        kind = arguments[0]
    return typing.get_args(kind)[0] if typing.get_origin(kind) is Annotated else kind


def _extra(field: FieldInfo) -> dict[str, Any]:
    return dict(field.json_schema_extra) if isinstance(field.json_schema_extra, dict) else {}


def _panel_place(named: tuple[str, FieldInfo]) -> int:
    """Where the panel of a field comes, so that a config may extend another with panels between its own."""
    return PANELS.index(_extra(named[1])["panel"])


def _parameter(name: str, field: FieldInfo) -> inspect.Parameter:
    kind, extra = _kind(field), _extra(field)
    option: dict[str, Any] = {
        "help": f"{field.description} {_default_note(field)}".strip(),
        "rich_help_panel": extra["panel"],
        "show_default": False,
    }
    annotation: Any
    spelling = option_name(name)
    if kind is bool:
        annotation = bool | None
        option["metavar"] = FLAG
        if field.default is True:
            spelling = f"{spelling}/--no-{spelling[2:]}"
    elif typing.get_origin(kind) is tuple and not _has_commas(field):
        annotation = list[str] | None
        option["metavar"] = "PATTERN"
    else:
        annotation = str | None
        option["metavar"] = extra.get("metavar") or METAVARS.get(kind, "NAME")
    made: Any = typer.Option(spelling, **option)
    if argument := argument_name(field):
        made = typer.Argument(**(option | {"metavar": argument}))
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[annotation, made]
    )


def _default_note(field: FieldInfo) -> str:
    kind = _kind(field)
    if field.default is PydanticUndefined:
        return "[red]\\[required][/red]"
    if typing.get_origin(kind) is Literal:
        choices = (
            f"{choice} (default)" if choice == field.default else choice for choice in typing.get_args(kind)
        )
        return f"[dim]\\[{', '.join(choices)}][/dim]"
    if kind is bool or field.default in (None, ()):
        return ""
    if typing.get_origin(kind) is tuple:
        return f"[dim]\\[default: {','.join(str(item) for item in field.default)}][/dim]"
    return f"[dim]\\[default: {field.default}][/dim]"


def _read_toml(config: type[BaseModel], file: Path) -> tuple[dict[str, Any], list[str]]:
    """The known keys of a TOML file, and what is wrong with the others."""
    try:
        values = tomllib.loads(file.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise ConfigError(f"--config {file}: cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"--config {file}: not a TOML file: {error}") from error
    known = config.model_fields
    problems = [
        f"{file}: unknown key {key!r}{suggest(key, known) or '; known are ' + ', '.join(known)}"
        for key in values
        if key not in known
    ]
    return {key: value for key, value in values.items() if key in known}, problems


def _explain(config: type[BaseModel], detail: ErrorDetails, call: Callable[[str], str]) -> list[str]:
    """The problems in one of pydantic's errors, in our words."""
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
    hint = did_you_mean(value, _choices(field)) if isinstance(value, str) else ""
    return [f"{call(name)} is {value!r}; expected {describe_expected(field)}{hint}"]


def _first_lower(text: str) -> str:
    return text[:1].lower() + text[1:]
