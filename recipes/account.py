"""The account of a run, put together in one way: what all have in common, and the whole of a `Result`."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compress.machine import describe_machine
from encoder.config import Strict
from encoder.metrics import main_metric
from recipes.result import Against, Encoded, ModelResult, Parent, Result, TrainingResult, describe_data, now
from recipes.scoring import Scored

if TYPE_CHECKING:
    from encoder.data import TaskData


def describe_run(
    command: str,
    options: Strict,
    *,
    seconds: float,
    output: Path | None,
    seed: int | None,
    parent: Parent | None,
    notes: list[str],
) -> dict[str, Any]:
    """What every ``Run`` says of itself, by field name; it ends now. ``output``: what was made, if any."""
    return {
        "command": command,
        "created": now(),
        "seconds": seconds,
        "output": None if output is None else str(output),
        "config": options.model_dump(mode="json"),
        "seed": seed,
        "machine": describe_machine(),
        "parent": parent,
        "notes": tuple(notes),
    }


def make_account(
    command: str,
    options: Strict,
    *,
    model: ModelResult,
    parent: Parent | None,
    data: "TaskData",
    encoded: Mapping[str, Encoded],
    scored: Mapping[str, Scored],
    against: Against | None,
    notes: list[str],
    seconds: float,
    training: TrainingResult | None = None,
    **more: Any,
) -> Result:
    """The ``Result`` of ``command`` with ``options``: ``model``, scored by split on ``data``.

    ``more`` are the parts that only some commands have: what was measured, a sweep, a pruning.
    """
    return Result(
        model=model,
        data=describe_data(data, encoded),
        training=training,
        main_metric=main_metric(data.task),
        scores={name: one.scores for name, one in scored.items()},
        intervals={name: one.interval for name, one in scored.items() if one.interval is not None},
        per_class={name: one.per_class for name, one in scored.items() if one.per_class is not None},
        against=against,
        **describe_run(
            command,
            options,
            seconds=seconds,
            output=getattr(options, "output", None),
            seed=getattr(options, "seed", None),
            parent=parent,
            notes=notes,
        ),
        **{"latency": (), "size": None} | more,
    )
