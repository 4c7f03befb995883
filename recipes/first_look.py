"""All that can be refused before torch is loaded, looked at together and told at once."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from encoder.config import EncoderConfig
from encoder.errors import Problems
from encoder.files import OutputFolder
from encoder.model_folder import is_exported, peek_config, read_task
from encoder.sources import BUILTIN_DATA, check_place
from encoder.task import Task
from recipes.observer import Observer
from recipes.result import Result
from recipes.resuming import Resumable, check_output_folder

# Where something is refused already, rows up to so many bytes are still looked through for more to tell.
LOOKED_THROUGH_BYTES = 20_000_000


class Options(Resumable, Protocol):
    """The options of a command that makes a model of a model and data."""

    @property
    def model(self) -> str:
        """A folder, or a name."""

    @property
    def data(self) -> str:
        """A file, a folder, or a name."""


def look_first(
    command: str,
    options: Options,
    observer: Observer,
    *,
    check_shape: Callable[[EncoderConfig], object] = lambda shape: None,
    further: Callable[[], object] = lambda: None,
    needs_classifier: bool = False,
) -> tuple[OutputFolder, Result | None]:
    """The folder to make; and the result, where ``resume`` finds that all was done before.

    ``check_shape`` refuses options that do not fit a model of this shape, ``further`` what else a command
    names. ``needs_classifier``: data is checked against the labels of the model.

    Raises:
        EncError: all that is wrong with output, model and data; of one kind where all of it is.
    """
    problems = Problems()
    folder, finished = None, None
    with problems.collected():
        folder, finished = check_output_folder(command, options, observer)
    if folder is not None and finished is not None:
        return folder, finished
    shape = None
    with problems.collected():
        shape = peek_config(options.model)
    if shape is not None:
        with problems.collected():
            check_shape(shape)
    place_is_good = False
    with problems.collected():
        check_place(options.data)
        place_is_good = True
    with problems.collected():
        further()
    if problems.found and place_is_good:
        with problems.collected():
            _look_through(options, needs_classifier=needs_classifier, model_is_good=shape is not None)
    problems.tell()
    assert folder is not None
    return folder, None


def _look_through(options: Any, *, needs_classifier: bool, model_is_good: bool) -> None:
    """The rows, where they are few and here; without torch and ``datasets``."""
    path = Path(options.data).expanduser()
    if path.is_dir():
        files = [file for file in path.iterdir() if file.is_file()]
        saved = any(file.name in ("dataset_dict.json", "state.json") for file in files)
    else:
        files, saved = [path] if path.is_file() else [], False
    if saved or not files or options.data in BUILTIN_DATA:
        return
    if sum(file.stat().st_size for file in files) > LOOKED_THROUGH_BYTES:
        return
    from encoder.data import DataOptions, check_data

    task: Task | None = None
    if needs_classifier:
        folder = Path(options.model).expanduser()
        if not model_is_good or not folder.is_dir() or is_exported(folder):
            return
        task = read_task(folder)
        if task is None:
            return
    names = [name for name in DataOptions.model_fields if hasattr(options, name)]
    check_data(options.data, DataOptions(**{name: getattr(options, name) for name in names}), task=task)
