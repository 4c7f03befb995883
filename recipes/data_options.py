"""How data are to be read: what a command was told, and what the training of its model says."""

from typing import TYPE_CHECKING, Any

from recipes.result import Result

if TYPE_CHECKING:
    from encoder.data import DataOptions


def data_options(options: Any, model: Result | None = None, *, rows_too: bool = True) -> "DataOptions":
    """The options of ``encoder.data.read_data`` that the config ``options`` has.

    Where it names no ``validation_fraction``, the rows cut off for validation are those that were cut off
    when the model of the run ``model`` was trained: of others, some would be rows that it has learnt.
    Without ``rows_too`` all training rows are read, as a config's ``train_rows`` may mean something else.
    """
    from encoder.data import DataOptions

    names = set(DataOptions.model_fields) & set(type(options).model_fields)
    asked = {name: getattr(options, name) for name in names if rows_too or name != "train_rows"}
    if asked.get("validation_fraction") is None:
        asked.pop("validation_fraction", None)
        if model is not None and model.data.validation_fraction is not None:
            asked["validation_fraction"] = model.data.validation_fraction
    return DataOptions(**asked)
