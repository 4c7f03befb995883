"""All that can be refused before torch is loaded, looked at together and told at once."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from compress.machine import require_gpu
from encoder.config import EncoderConfig
from encoder.errors import ConfigError, Problems
from encoder.files import OutputFolder
from encoder.model_folder import peek_config, read_task
from encoder.sources import BUILTIN_DATA, check_place
from encoder.task import Task
from recipes.data_options import data_options
from recipes.export_config import ExportConfig
from recipes.models import no_classifier
from recipes.observer import Observer
from recipes.result import Result, check_output, read_result
from recipes.resuming import Resumable, check_output_folder

# Where something is refused already, rows up to so many bytes are still looked through for more to tell.
LOOKED_THROUGH_BYTES = 20_000_000


class Inputs(Protocol):
    """The options that name a model and data."""

    @property
    def model(self) -> str:
        """A folder, or a name."""

    @property
    def data(self) -> str:
        """A file, a folder, or a name."""


class Making(Inputs, Resumable, Protocol):
    """The options of a command that makes a model of a model and data."""


class Measuring(Inputs, Protocol):
    """The options of a command that scores a model on data, and may keep its result."""

    @property
    def output(self) -> Path | None:
        """The folder to make."""

    @property
    def overwrite(self) -> bool:
        """Replace it."""


def look_first(
    command: str,
    options: Making,
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
        check_inputs_stay(options)
        folder, finished = check_output_folder(command, options, observer, read_result)
    if folder is not None and finished is not None:
        return folder, finished
    with problems.collected():
        further()
    look_at_inputs(options, problems, check_shape=check_shape, needs_classifier=needs_classifier)
    problems.tell(folder)
    assert folder is not None
    return folder, None


def check_inputs_stay(options: Making | ExportConfig) -> None:
    """Refuse to replace a folder that the run itself starts from.

    Raises:
        ConfigError: the model or the data is the output, or in it.
    """
    output = options.output.resolve()
    for name in (options.model, options.data):
        path = Path(name).expanduser()
        if options.overwrite and path.exists() and path.resolve().is_relative_to(output):
            where = "that folder" if path.resolve() == output else "in that folder"
            raise ConfigError(
                f"--output {options.output}: {name} is {where}, and would be lost; choose another name"
            )


def look_before_measuring(
    options: Measuring, *, exported: bool = False, needs_classifier: bool = False
) -> OutputFolder | None:
    """As ``look_first``, for a command that makes no model: the folder to keep its result in, if any.

    ``exported``: a model that `enc export` wrote is welcome.

    Raises:
        EncError: all that is wrong with output, model and data; of one kind where all of it is.
    """
    problems = Problems()
    folder = None
    with problems.collected():
        folder = check_output(options.output, overwrite=options.overwrite)
    look_at_inputs(options, problems, exported=exported, needs_classifier=needs_classifier)
    problems.tell(folder)
    return folder


def look_at_inputs(
    options: Inputs,
    problems: Problems,
    *,
    exported: bool = False,
    check_shape: Callable[[EncoderConfig], object] = lambda shape: None,
    needs_classifier: bool,
) -> None:
    """Collect in ``problems`` what is wrong with model and data; see ``look_first``."""
    shape, task = None, None
    with problems.collected():
        shape = peek_config(options.model, exported=exported)
        folder = Path(options.model).expanduser()
        task = read_task(folder) if folder.is_dir() else None
        if needs_classifier and folder.is_dir() and task is None:
            raise no_classifier(options.model)
    if shape is not None:
        with problems.collected():
            check_shape(shape)
        most = getattr(options, "max_length", None)
        if most is not None and most > shape.max_tokens and not exported:
            with problems.collected():
                raise ConfigError(
                    f"--max-length {most}: {options.model} holds {shape.max_tokens} tokens at most"
                )
    if getattr(options, "device", None) == "cuda" and not exported:
        with problems.collected():
            require_gpu(otherwise="cpu or auto")
    with problems.collected():
        check_place(options.data)
        if problems.found and (task is not None or not needs_classifier):
            _look_through(options, task if needs_classifier else None)


def is_here(data: str) -> bool:
    """Whether ``data`` are files that can be read without ``datasets``."""
    path = Path(data).expanduser()
    if path.is_dir():
        return not any((path / name).is_file() for name in ("dataset_dict.json", "state.json"))
    return path.is_file()


def is_read_at_once(data: str) -> bool:
    """Whether files are so small that it takes no time to look through them."""
    path = Path(data).expanduser()
    files = [file for file in path.iterdir() if file.is_file()] if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files) <= LOOKED_THROUGH_BYTES


def _look_through(options: Any, task: Task | None) -> None:
    """The rows, where they are few and here; without torch and ``datasets``."""
    if options.data in BUILTIN_DATA or not is_here(options.data) or not is_read_at_once(options.data):
        return
    from encoder.data import check_data

    check_data(options.data, data_options(options), task=task)
