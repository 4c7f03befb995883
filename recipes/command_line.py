"""The command line that a run was made by, put together from the options that its run.json holds."""

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from recipes.chain_steps import KINDS
from recipes.depth_config import DepthConfig
from recipes.option_words import extra_of, has_commas
from recipes.options import Options
from recipes.pretrain_config import PretrainConfig

# Of every command that keeps a run.json: steps of chains, and what is no step.
CONFIGS: Mapping[str, type[Options]] = {name: kind.options for name, kind in KINDS.items()} | {
    "pretrain": PretrainConfig,
    "depth": DepthConfig,
}
# What a reader looks for first.
FIRST = ("model", "data", "output")
# How a run was started does not change what comes of it.
NOT_REPEATED = ("overwrite", "resume")


def command_line(command: str, options: Mapping[str, Any]) -> str:
    """``enc finetune --model … --seed 3``: ``options`` that are not the default, quoted for a shell.

    A command that is not known is told with all of its options.
    """
    config = CONFIGS.get(command)
    fields: Mapping[str, FieldInfo] = config.model_fields if config else {}
    words = ["enc", command]
    for name in sorted(options, key=lambda name: (not _is_argument(fields.get(name)), name not in FIRST)):
        if name not in NOT_REPEATED and not _is_default(fields.get(name), options[name]):
            words += _spell(name, options[name], fields.get(name))
    return shlex.join(words)


def _spell(name: str, value: Any, field: FieldInfo | None) -> Iterator[str]:
    option = "--" + name.replace("_", "-")
    if value is None or value == []:
        return
    if _is_argument(field):
        yield from (str(item) for item in (value if isinstance(value, list) else [value]))
    elif isinstance(value, bool):
        yield option if value else f"--no-{option[2:]}"
    elif isinstance(value, list) and not (field is not None and has_commas(field)):
        for item in value:
            yield from (option, str(item))
    else:
        yield option
        yield ",".join(str(item) for item in value) if isinstance(value, list) else str(value)


def _is_default(field: FieldInfo | None, value: Any) -> bool:
    if field is None:
        return value is False
    if field.default is PydanticUndefined:
        return False
    default = list(field.default) if isinstance(field.default, tuple) else field.default
    return bool(value == default)


def _is_argument(field: FieldInfo | None) -> bool:
    return field is not None and "argument" in extra_of(field)
