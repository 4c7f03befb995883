"""Options made from a config: each field of a pydantic model is one, declared nowhere else.

Typer is given every value as text; pydantic checks them all, together with those of a TOML file, so that all
mistakes are reported at once and in the words they were typed in.
"""

import inspect
import tomllib
import typing
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import typer
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from encoder.errors import ConfigError
from recipes.fields import PANELS
from recipes.option_words import explain, extra_of, has_commas, kind_of, suggest

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
        help="A TOML file of these options (threads = 2, _ in place of -). The command line wins.",
        show_default=False,
        rich_help_panel="Model and data",
    ),
]
METAVARS = {int: "N", float: "X", str: "TEXT", Path: "PATH"}


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
        told = "".join(problems)
        problems += explain(
            config, error, call, [name for name in config.model_fields if f"mean {name!r}" in told]
        )
    if problems:
        raise ConfigError.from_problems(problems)
    return made


def option_name(name: str) -> str:
    """``--batch-size`` of ``batch_size``."""
    return "--" + name.replace("_", "-")


def argument_name(field: FieldInfo) -> str | None:
    """Where a field is given by its place and not by an option, its name in a usage line: ``MODEL...``."""
    return extra_of(field).get("argument")


def _panel_place(named: tuple[str, FieldInfo]) -> int:
    """Where the panel of a field comes, so that a config may extend another with panels between its own."""
    return PANELS.index(extra_of(named[1])["panel"])


def _parameter(name: str, field: FieldInfo) -> inspect.Parameter:
    kind, extra = kind_of(field), extra_of(field)
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
    elif typing.get_origin(kind) is tuple and not has_commas(field):
        annotation = list[str] | None
        option["metavar"] = extra.get("metavar") or "PATTERN"
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
    kind = kind_of(field)
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
