"""The command line that a run was made by, put together from the options that its run.json holds."""

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from recipes.bench_config import BenchConfig
from recipes.distill_config import DistillConfig
from recipes.drop_layers_config import DropLayersConfig
from recipes.evaluate_config import EvaluateConfig
from recipes.export_config import ExportConfig
from recipes.finetune_config import FinetuneConfig
from recipes.freeze_sweep_config import FreezeSweepConfig
from recipes.probe_config import ProbeConfig
from recipes.profile_config import ProfileConfig
from recipes.prune_heads_config import PruneHeadsConfig
from recipes.prune_neurons_config import PruneNeuronsConfig

# Of every command that keeps a run.json. One that is not here is told with all of its options.
CONFIGS: Mapping[str, type[BaseModel]] = {
    "bench": BenchConfig,
    "distill": DistillConfig,
    "drop-layers": DropLayersConfig,
    "evaluate": EvaluateConfig,
    "export": ExportConfig,
    "finetune": FinetuneConfig,
    "freeze-sweep": FreezeSweepConfig,
    "probe": ProbeConfig,
    "profile": ProfileConfig,
    "prune-heads": PruneHeadsConfig,
    "prune-neurons": PruneNeuronsConfig,
}
# How a run was started does not change what comes of it.
NOT_REPEATED = ("overwrite", "resume")


def command_line(command: str, options: Mapping[str, Any]) -> str:
    """``enc finetune --model … --seed 3``: ``options`` that are not the default, quoted for a shell."""
    config = CONFIGS.get(command)
    fields: Mapping[str, FieldInfo] = config.model_fields if config else {}
    words = ["enc", command]
    ordered = sorted(options, key=lambda name: not _is_argument(fields.get(name)))
    for name in ordered:
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
    elif isinstance(value, list) and not (field is not None and _extra(field).get("commas")):
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
    return field is not None and "argument" in _extra(field)


def _extra(field: FieldInfo) -> dict[str, Any]:
    return dict(field.json_schema_extra) if isinstance(field.json_schema_extra, dict) else {}
