"""Runs that make a folder and survive being killed: claimed, found finished, continued, given their name."""

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeVar

from encoder.errors import ConfigError
from encoder.files import OutputFolder, write_json
from recipes.observer import Observer
from recipes.result import Run

# Within the work folder, all that an interrupted run needs to continue; gone when it is finished.
TRAINING_FOLDER = "training"
# What an interrupted run must have in common with the one that continues it.
STARTED_FILE = "started.json"
# Options that change nothing about the model that comes out. The model and the data are compared by content.
FREE_TO_CHANGE = (
    *("model", "data", "output", "latency", "overwrite", "resume"),
    *("threads", "cache_frozen", "cache_memory_gb"),
)


Made = TypeVar("Made", bound=Run)


class Resumable(Protocol):
    """The options of a command that makes a folder and can be resumed."""

    @property
    def output(self) -> Path:
        """The folder to make."""

    @property
    def overwrite(self) -> bool:
        """Replace it."""

    @property
    def resume(self) -> bool:
        """Continue an interrupted run."""

    def model_dump(self, *, mode: str = ..., exclude: Any = ...) -> dict[str, Any]:
        """All options by name."""


def check_output_folder(
    command: str, config: Resumable, observer: Observer, read: Callable[[Path], Made | None]
) -> tuple[OutputFolder, Made | None]:
    """The folder to make; and the result, where ``resume`` finds that all was done before.

    ``read`` finds the result of a run of ``command`` in a folder.

    Raises:
        ConfigError: the folder cannot be made, is there already, or holds what another command made.
    """
    folder = OutputFolder(config.output, overwrite=config.overwrite, resume=config.resume)
    if config.resume and (finished := read(config.output)) is not None:
        if finished.command != command:
            raise ConfigError(
                f"--output {config.output}: a finished run of enc {finished.command} is in that folder, not "
                f"one of enc {command} to resume; choose another name, or --overwrite to replace it"
            )
        _check_as_finished(config, finished)
        observer.note(f"{config.output} is finished; there is nothing to resume.")
        return folder, finished
    folder.check()
    if config.resume and not folder.work.exists():
        observer.note(f"Nothing to resume in {config.output}; starting anew.")
    finished = read(folder.work) if config.resume else None
    if finished is not None:  # killed while tidying up
        finish(folder)
    return folder, finished


def _check_as_finished(config: Resumable, finished: Run) -> None:
    """Refuse options that the run ``finished`` was not made with: its result is not that of these.

    Model and data are compared by their names, as nothing is read of what is not going to be computed.
    """
    now = config.model_dump(mode="json", exclude=set(FREE_TO_CHANGE) - {"model", "data"})
    changed = [
        f"  {name}: {_short(finished.config[name])} then, {_short(value)} now"
        for name, value in now.items()
        if name in finished.config and not _is_same(finished.config[name], value)
    ]
    if changed:
        raise ConfigError.from_problems(
            changed,
            title=f"--output {config.output}: the run in that folder is finished, and was made with other "
            "options; choose another name, or --overwrite to replace it:",
        )


def _is_same(then: Any, now: Any) -> bool:
    """Whether two values of an option are equal, or two names of one place."""
    if then == now or not (isinstance(then, str) and isinstance(now, str)):
        return bool(then == now)
    return Path(then).expanduser().resolve() == Path(now).expanduser().resolve()


def claim(
    folder: OutputFolder, config: Resumable, *, model: str, data: str, free: tuple[str, ...] = ()
) -> Path:
    """Make the folder for unfinished work, or check that what is in there was of the same kind.

    ``model`` and ``data`` are hashes of their content; ``free`` are further options that may change.

    Raises:
        ConfigError: with ``resume``, another model, data set or option; all that differ are named.
    """
    this = {
        "model": model,
        "data": data,
        **config.model_dump(mode="json", exclude={*FREE_TO_CHANGE, *free}),
    }
    training = folder.work / TRAINING_FOLDER
    if config.resume:
        check_unchanged(training / STARTED_FILE, this, folder.work)
    folder.open()
    training.mkdir(exist_ok=True)
    write_json(training / STARTED_FILE, this)
    return training


def check_unchanged(started: Path, this: Mapping[str, Any], work: Path) -> None:
    """Refuse to continue what is in ``work`` if ``started`` says that it was begun otherwise than ``this``.

    Raises:
        ConfigError: with all that differs.
    """
    if not started.exists():
        return
    before = json.loads(started.read_bytes())
    changed = [
        f"  {name}: {_short(before.get(name))} then, {_short(value)} now"
        for name, value in this.items()
        if before.get(name) != value
    ]
    if changed:
        raise ConfigError.from_problems(
            changed,
            title=f"{work} was started with other options; --resume continues a run as it was, "
            "--overwrite starts again:",
        )


def holds_work(work: Path) -> bool:
    """Whether there is more in ``work`` than that a run was started."""
    return any(path.is_file() and path.name != STARTED_FILE for path in work.rglob("*"))


def finish(folder: OutputFolder) -> None:
    """Tidy up the work, which run.json says is complete, and give it its name."""
    shutil.rmtree(folder.work / TRAINING_FOLDER, ignore_errors=True)
    folder.finish()


def _short(value: Any) -> str:
    """A value of started.json in an error; of a hash, enough to see that it differs."""
    return f"{value[:12]}…" if isinstance(value, str) and len(value) == 64 else json.dumps(value)
