"""Standard streams that cannot be written, as on a full disk, or that were closed from the start."""

import io
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO, cast

from encoder.errors import EncError

CLOSED = (
    "stdout is closed, and that is where the answer goes, so nothing was begun: "
    "send it to a file with > FILE, or nowhere with > /dev/null"
)


def prepare_streams() -> None:
    """Tell a failed write to stdout apart from a bug, and let none to stderr end a run.

    Raises:
        EncError: stdout is closed.
    """
    # The next file that is opened would get the number of a closed stream, and all that C code prints there.
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            _put_nothing_at(number)
    stdin, stdout, stderr = map(_or_none, (sys.stdin, sys.stdout, sys.stderr))
    if stdin is None:
        sys.stdin = Path(os.devnull).open(encoding="utf-8")  # noqa: SIM115 - open to the end
    sys.stderr = _nowhere() if stderr is None else _wrapped(stderr, _Remarks)
    sys.stdout = _nowhere() if stdout is None else _wrapped(stdout, _Answer)
    if stdout is None:
        raise EncError(CLOSED)


def say(text: str) -> None:
    """Write to stderr, where somebody reads it: how enc ends must not depend on that."""
    with suppress(ReaderGoneError):
        sys.stderr.write(text)
        sys.stderr.flush()


class ReaderGoneError(Exception):
    """Whoever read the stream has left. Not a BrokenPipeError, of which Rich makes an exit with code 1."""


class _Watched(io.FileIO):
    """A stream whose reader may leave, and whose failed writes mean something."""

    def write(self, data: Any, /) -> int:
        """See ``io.FileIO``. Raises ``ReaderGoneError``, and what ``failed`` raises."""
        try:
            return super().write(data)
        except BrokenPipeError:
            _put_nothing_at(self.fileno())
            raise ReaderGoneError from None
        except OSError as error:
            self.failed(error)
            return len(data)

    def failed(self, error: OSError) -> None:
        """What a write that failed by ``error`` is to be."""
        raise NotImplementedError


class _Answer(_Watched):
    """Stdout. A write fails once, then what is still held goes nowhere."""

    def failed(self, error: OSError) -> None:
        """Raises ``EncError``."""
        _put_nothing_at(self.fileno())
        raise EncError(
            f"stdout cannot be written ({error.strerror}), so the answer is not whole: "
            "send it where there is room"
        ) from error


class _Remarks(_Watched):
    """Stderr. A failed write is nothing to end for, and there is no place left to tell it."""

    def failed(self, error: OSError) -> None:
        """Nothing."""


def _or_none(stream: TextIO) -> TextIO | None:
    """``stream``, which is ``None`` where it was closed, though no type says so."""
    return cast("TextIO | None", stream)


def _nowhere() -> TextIO:
    return Path(os.devnull).open("w", encoding="utf-8")


def _wrapped(stream: TextIO, kind: Callable[..., io.FileIO]) -> TextIO:
    """``stream`` through a ``kind`` of file; a stream that is no file, as in a notebook, as it is."""
    if not isinstance(stream, io.TextIOWrapper):
        return stream
    return io.TextIOWrapper(
        io.BufferedWriter(kind(stream.fileno(), "w", closefd=False)),
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


def _put_nothing_at(number: int) -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    if nowhere != number:  # a closed stream's own number is the lowest that is free
        os.dup2(nowhere, number)
        os.close(nowhere)
