"""Rows to judge a model on: those that it was not trained on, also where one table holds both."""

from typing import TYPE_CHECKING, Any

from encoder.errors import DataError
from recipes.result import Result
from recipes.scoring import FineTuned

if TYPE_CHECKING:
    from encoder.data import DataOptions, TaskData


def read_evaluation_data(found: FineTuned, source: str, options: "DataOptions") -> "TaskData":
    """The data at ``source``, its labels matched by name to those of ``found``.

    A source without splits is one of test rows, unless the model was trained on it: then it is cut as it was
    in that training, so that no row of its training is taken for another.

    Raises:
        DataError, ConfigError: as ``read_data``.
    """
    from encoder.data import read_data

    data = read_data(source, options, task=found.task, single_split="test")
    then = found.result
    if list(data.splits) != ["test"] or then is None or not _may_be_its_own(data, then):
        return data
    cut: dict[str, Any] = {"train_rows": then.config.get("train_rows")}
    if then.data.validation_fraction is not None:
        cut["validation_fraction"] = then.data.validation_fraction
    try:
        as_trained = read_data(source, options.model_copy(update=cut), task=found.task)
    except DataError:  # nothing that a model could have been trained on
        return data
    return as_trained if as_trained.fingerprint == then.data.fingerprint else data


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
