"""Who works on an output: a lock that the system drops when its process ends, however it ends."""

import os
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from encoder.errors import ConfigError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

# Those of this process, which may look at an output of its own as often as it likes.
_HELD: "weakref.WeakValueDictionary[Path, OutputLock]" = weakref.WeakValueDictionary()


def lock_file(output: Path) -> Path:
    """``.NAME.lock`` beside ``output``: in no folder that gets its name, and in no sum over one."""
    return output.parent / f".{output.name}.lock"


def hold(output: Path) -> "OutputLock":
    """The lock of ``output``, held until it is released, forgotten, or the process is gone.

    Where the system, the file system or the rights in the folder allow no lock, it goes on without.

    Raises:
        ConfigError: another process holds it.
    """
    place = output.absolute()
    key = place.parent.resolve() / place.name
    lock = _HELD.get(key)
    if lock is None:
        lock = OutputLock(output)
        if lock.is_held:
            _HELD[key] = lock
    return lock


@contextmanager
def held(output: Path) -> Iterator[None]:
    """The context of work on ``output``; see ``hold``."""
    lock = hold(output)
    try:
        yield
    finally:
        lock.release()


class OutputLock:
    """A lock on the file ``.NAME.lock``, which is there while it is held, and after a process was killed.

    It is the open file that holds the lock, and not that there is one. What is started by this process does
    not get it: Python opens files so that a new program has them not, and a forked process closes it.
    """

    def __init__(self, output: Path) -> None:
        self._drop: weakref.finalize[..., OutputLock] | None = None
        if fcntl is None:
            return
        path, made = lock_file(output.absolute()), []
        try:
            made = [folder for folder in path.parents if not folder.exists()]
            path.parent.mkdir(parents=True, exist_ok=True)
            found = _open_locked(path)
        except BlockingIOError:
            raise ConfigError(
                f"--output {output}: another enc{_holder(path)} is working on it; wait for it, or choose "
                "another --output"
            ) from None
        except OSError:
            _remove_empty(made)
            return
        os.truncate(found, 0)
        os.write(found, f"{os.getpid()}\n".encode())
        # Also at the end of the process; not in one that was forked, where this number is another's.
        self._drop = weakref.finalize(self, _unlock, found, path, made, os.getpid())

    @property
    def is_held(self) -> bool:
        """Whether there is a lock."""
        return self._drop is not None and self._drop.alive

    def release(self) -> None:
        """Let others work on it; the second time nothing happens."""
        if self._drop is not None:
            self._drop()
        for key in [key for key, lock in _HELD.items() if lock is self]:
            del _HELD[key]

    def close_in_child_(self) -> None:
        """Leave the lock to the process that this one was forked from."""
        if self._drop is not None and (found := self._drop.detach()) is not None:
            os.close(found[2][0])


def _open_locked(path: Path) -> int:
    """The open and locked file ``path``.

    Raises:
        BlockingIOError: another process has locked it.
        OSError: there are no locks here, or no files.
    """
    while True:
        found = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(found, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(found), path.stat()):
                return found
        except FileNotFoundError:  # who had it has removed the file since it was opened
            pass
        except BlockingIOError:
            os.close(found)
            raise
        except OSError:
            path.unlink(missing_ok=True)
            os.close(found)
            raise
        os.close(found)


def _holder(path: Path) -> str:
    try:
        number = path.read_text().strip()
    except OSError:
        return ""
    return f" (process {number})" if number.isdigit() else ""


def _unlock(found: int, path: Path, made: list[Path], process: int) -> None:
    if os.getpid() != process:
        return
    path.unlink(missing_ok=True)  # before it is free, so that nobody locks a file that then goes
    os.close(found)
    _remove_empty(made)


def _remove_empty(folders: list[Path]) -> None:
    """Of ``folders``, the innermost first, those that were made for the lock and got nothing else."""
    for folder in folders:
        try:
            folder.rmdir()
        except OSError:
            return


def _close_in_child() -> None:
    for lock in list(_HELD.values()):
        lock.close_in_child_()
    _HELD.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_in_child)
