"""Rows to judge a model on: those that it was not trained on, also where one table holds both."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from encoder.errors import DataError
from recipes.result import Result
from recipes.scoring import FineTuned

if TYPE_CHECKING:
    from encoder.data import DataOptions, TaskData
    from encoder.task import Task


def read_evaluation_data(found: FineTuned, source: str, options: "DataOptions") -> "TaskData":
    """The data at ``source``, its labels matched by name to those of ``found``.

    A source without splits is one of test rows, unless the model was trained on it: then it is cut as it was
    in that training, so that no row of its training is taken for another. If it has changed since, which rows
    were learnt is not known any more, and a note says so.

    Raises:
        DataError, ConfigError: as ``read_data``.
    """
    from encoder.data import read_data

    data = read_data(source, options, task=found.task, single_split="test")
    then = found.result
    if list(data.splits) != ["test"] or then is None:
        return data
    as_trained = _cut_as_trained(source, options, found.task, data, then)
    if as_trained is not None:
        return as_trained
    if not _is_same_place(source, then.data.source):
        return data
    note = (
        f"{source} is what the model was trained on, but it is not as it was then: most of these rows may be "
        "ones that it has learnt, and a score on them says little about other texts"
    )
    return replace(data, report=replace(data.report, notes=(*data.report.notes, note)))


def _cut_as_trained(
    source: str, options: "DataOptions", task: "Task", data: "TaskData", then: Result
) -> "TaskData | None":
    """The data as they were cut when the run ``then`` trained on them; ``None`` if they are not those."""
    from encoder.data import read_data

    if not _may_be_its_own(data, then):
        return None
    cut: dict[str, Any] = {"train_rows": then.config.get("train_rows")}
    if then.data.validation_fraction is not None:
        cut["validation_fraction"] = then.data.validation_fraction
    try:
        as_trained = read_data(source, options.model_copy(update=cut), task=task)
    except DataError:  # nothing that a model could have been trained on
        return None
    return as_trained if as_trained.fingerprint == then.data.fingerprint else None


def _is_same_place(one: str, other: str) -> bool:
    first, second = (Path(name).expanduser() for name in (one, other))
    return first.exists() and first.resolve() == second.resolve()


def _may_be_its_own(data: "TaskData", then: Result) -> bool:
    """Whether the model can have been trained on all rows of ``data``, or some: by their number and labels.

    What is told so need not be read again, to be cut and compared in earnest.
    """
    splits, now = then.data.report.splits.values(), data.report.splits["test"]
    for name, count in now.classes.items():
        if count < sum(one.classes.get(name, 0) for one in splits):
            return False
    rows = sum(one.rows for one in splits)
    return rows == now.rows or (then.config.get("train_rows") is not None and rows < now.rows)
