"""What can go wrong by the user's doing, as one tree of exceptions.

::

    EncError
    ├── ConfigError        an option or a config file is wrong
    ├── DataError          a data file, a column, a row or a label is wrong
    ├── CheckpointError    a model folder cannot be found, read or written
    ├── CompressionError   a model cannot be made smaller in the way asked for
    └── ExportError        a model cannot be written in the format asked for

Each message says where, what was expected and found, and what to do. Only ``commands/app.py`` catches
``EncError`` (message on stderr, exit 2); anything else is a bug and shows its traceback (exit 70).
"""

import difflib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

SHOWN_PROBLEMS = 20


class EncError(Exception):
    """Base of all errors that the user can mend."""

    @classmethod
    def from_problems(cls, problems: Sequence[str], *, title: str = "") -> "EncError":
        """One error for all ``problems`` found, the first 20 spelt out, a line each, under ``title``."""
        lines = list(problems[:SHOWN_PROBLEMS])
        if len(problems) > SHOWN_PROBLEMS:
            lines.append(f"… and {len(problems) - SHOWN_PROBLEMS} more")
        if title:
            lines.insert(0, title)
        return cls("\n".join(lines))


class ConfigError(EncError):
    """An option or a config file is wrong."""


class DataError(EncError):
    """A data file, a column, a row or a label is wrong."""


class CheckpointError(EncError):
    """A model folder cannot be found, read or written."""


class CompressionError(EncError):
    """A model cannot be made smaller in the way asked for."""


class ExportError(EncError):
    """A model cannot be written in the format asked for."""


class _Held(Protocol):
    def release(self) -> None: ...


class Problems:
    """What several checks find, so that all of it is told at once and not only what the first one finds."""

    def __init__(self) -> None:
        self.found: list[EncError] = []

    @contextmanager
    def collected(self) -> Iterator[None]:
        """The context of one check: its EncError is kept, and the next check can follow."""
        try:
            yield
        except EncError as error:
            self.found.append(error)

    def tell(self, held: _Held | None = None) -> None:
        """Raise what was found: a single error as it is, several as one, of their kind if they share it.

        What is ``held``, such as an output, is let go of before that.
        """
        if self.found and held is not None:
            held.release()
        if len(self.found) == 1:
            raise self.found[0]
        if self.found:
            kinds = {type(error) for error in self.found}
            kind = kinds.pop() if len(kinds) == 1 else EncError
            raise kind("\n".join(dict.fromkeys(map(str, self.found))))


def did_you_mean(word: str, options: Iterable[str]) -> str:
    """``"; did you mean 'pos'?"`` when one of ``options`` is close to ``word``, else an empty string."""
    options = list(options)
    folded = {option.strip().casefold(): option for option in reversed(options)}
    close = difflib.get_close_matches(word.strip().casefold(), folded, n=1, cutoff=0.6)
    return f"; did you mean {folded[close[0]]!r}?" if close else ""
