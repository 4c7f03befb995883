"""Files and folders that are either whole or not there."""

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from encoder.errors import ConfigError
from encoder.output_lock import OutputLock, hold

UNFINISHED_SUFFIX = ".unfinished"
FAILED_SUFFIX = ".failed"
# In every finished folder: what was done to make it.
RUN_FILE = "run.json"


def write_atomic(path: Path, content: str | bytes) -> None:
    """Write a file so that a reader sees the old content or the new one, never a part (UTF-8 for text)."""
    with open_atomic(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextmanager
def open_atomic(path: Path) -> Iterator[BinaryIO]:
    """A file to write to; it takes the place of ``path`` when the context ends without an error."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def write_json(path: Path, value: Any) -> None:
    """``write_atomic`` of ``value`` as indented JSON."""
    write_atomic(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


class OutputFolder:
    """The folder a command writes: it appears under its name only when it is whole.

    All work happens in ``work``, a sibling named ``NAME.unfinished``, which ``finish`` renames. A killed run
    leaves that sibling, which ``resume`` takes up again; ``None`` for a command that cannot. What turns out
    not to be good enough for its name ends as ``failed``, a sibling named ``NAME.failed``. A single file that
    takes long to make is made in the same way, by ``check_file`` and ``finish_file``.

    From its check on, until it has its name or is forgotten, no other process can work on it.
    """

    def __init__(self, path: Path, *, overwrite: bool = False, resume: bool | None = None) -> None:
        self.path = path
        self.work = path.parent / (path.name + UNFINISHED_SUFFIX)
        self.failed = path.parent / (path.name + FAILED_SUFFIX)
        self.overwrite = overwrite
        self.resume = resume
        self._lock: OutputLock | None = None

    def check(self) -> None:
        """Refuse before any work is done: ConfigError if something is there, or nothing can be written, or
        another process is at it."""
        if self.path.name in ("", ".."):
            raise ConfigError(f"--output {self.path}: expected the name of a folder to create")
        self._lock = hold(self.path)
        with self._released_on_error():
            self._check_names()

    def _check_names(self) -> None:
        if self.overwrite and self.resume:
            raise ConfigError("--overwrite and --resume exclude each other: start again, or continue?")
        if self.path.is_file() or self.work.is_file():
            raise ConfigError(f"--output {self.path}: a file of that name exists; choose another name")
        if self.path.exists() and any(self.path.iterdir()) and not self.overwrite:
            raise ConfigError(
                f"--output {self.path}: the folder exists and is not empty; "
                "choose another name, or --overwrite to replace it when the new run is finished"
            )
        if self.path.exists() and any(self.path.iterdir()) and not (self.path / RUN_FILE).is_file():
            raise ConfigError(
                f"--output {self.path}: the folder is not empty, and no run of enc made it (no {RUN_FILE} is "
                "in it), so it is not replaced; choose another name, or delete it yourself"
            )
        self._check_place()

    def _check_place(self) -> None:
        if self.work.exists() and not (self.overwrite or self.resume):
            raise ConfigError(
                f"--output {self.path}: an interrupted run is in {self.work}; "
                + ("" if self.resume is None else "--resume continues it, ")
                + "--overwrite starts again"
            )
        for above in self.path.absolute().parents:
            if (above / RUN_FILE).is_file() and (above / "config.json").is_file():
                raise ConfigError(
                    f"--output {self.path}: {above} is the folder of a model, and what is in it goes when it "
                    "is replaced; choose a place outside"
                )
        parent = next(folder for folder in self.path.absolute().parents if folder.exists())
        if not parent.is_dir():
            raise ConfigError(f"--output {self.path}: cannot write in {parent}, which is no folder")
        try:  # to ask for permission is not enough: root has it everywhere, and /proc takes no folder
            Path(tempfile.mkdtemp(prefix=".enc-", dir=parent)).rmdir()
        except OSError as error:
            raise ConfigError(f"--output {self.path}: cannot write in {parent}: {error.strerror}") from error

    def check_room(self, size_bytes: int) -> None:
        """Refuse before any work is done what its disk has no room for.

        Raises:
            ConfigError: fewer than ``size_bytes`` are free.
        """
        folder = next(folder for folder in self.path.absolute().parents if folder.exists())
        free = shutil.disk_usage(folder).free
        if free < size_bytes:
            raise ConfigError(
                f"--output {self.path}: needs about {size_bytes / 1e6:,.1f} MB, and {free / 1e6:,.1f} MB are "
                "free on that disk; make room, or choose a folder on another one"
            )

    def check_file(self) -> None:
        """As ``check``, where ``path`` is to be a file: ``finish_file`` will move it there."""
        if self.overwrite and self.resume:
            raise ConfigError("--overwrite and --resume exclude each other: start again, or continue?")
        if self.path.is_dir():
            raise ConfigError(f"--output {self.path}: a folder of that name exists; choose another name")
        self._lock = hold(self.path)
        with self._released_on_error():
            self._check_file_names()

    def _check_file_names(self) -> None:
        if self.path.exists() and not (self.overwrite or (self.resume and self.work.exists())):
            raise ConfigError(
                f"--output {self.path}: the file exists; choose another name, or --overwrite to replace it "
                "when the new one is finished"
            )
        self._check_place()

    def open(self) -> Path:
        """Create ``work`` (emptied unless resuming) and return it."""
        try:
            if self.work.exists() and not self.resume:
                shutil.rmtree(self.work)
            self.work.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"--output {self.path}: cannot be created: {error.strerror}") from error
        return self.work

    @contextmanager
    def discarded_on_error(self) -> Iterator[None]:
        """The context of a command that cannot resume: after an error no unfinished folder is left behind."""
        try:
            yield
        except BaseException:
            shutil.rmtree(self.work, ignore_errors=True)
            self.release()
            raise

    def fail(self) -> None:
        """Give the work the name ``failed`` instead; what failed before goes, what is in ``path`` stays."""
        shutil.rmtree(self.failed, ignore_errors=True)
        self.work.rename(self.failed)
        self.release()

    def finish(self) -> None:
        """Give the work its name. With ``overwrite`` the old folder goes only now."""
        if self.path.exists():
            old = self.path.with_name(self.path.name + ".replaced")
            shutil.rmtree(old, ignore_errors=True)
            self.path.rename(old)
            self.work.rename(self.path)
            shutil.rmtree(old)
        else:
            self.work.rename(self.path)
        self.release()

    def finish_file(self, whole: Path) -> None:
        """Give the file ``whole``, which is in ``work``, the name ``path``; nothing else stays."""
        whole.replace(self.path)
        shutil.rmtree(self.work)
        self.release()

    @contextmanager
    def _released_on_error(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Let other processes work on it."""
        if self._lock is not None:
            self._lock.release()
