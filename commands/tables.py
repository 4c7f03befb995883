"""What all output has in common: the console, tables, and numbers written for reading.

Nothing is ever cut to fit: a long name wraps, and where the output is not a terminal lines are as long as
they need to be: whoever reads a file finds paths and labels whole.
"""

import re
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol, TextIO, cast

from compress.uncertainty import ScoreInterval
from encoder.wording import counted

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

WIDTH_OF_A_FILE = 200
WIDEST = 110


def open_console(*, stderr: bool = False) -> "Console":
    """Where tables are printed; without colour when NO_COLOR is set or nobody watches."""
    from rich.console import Console

    console = Console(stderr=stderr, highlight=False)
    if console.is_terminal:
        console.width = min(console.width, WIDEST)
        return console
    stream = sys.stderr if stderr else sys.stdout
    return Console(
        file=cast("TextIO", _WithoutTrailingBlanks(stream)), highlight=False, width=WIDTH_OF_A_FILE
    )


class _WithoutTrailingBlanks:
    """A stream to which Rich's lines, padded to the width of their table, go without the padding."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write the lines of ``text``."""
        self._stream.write(re.sub(" +$", "", text, flags=re.MULTILINE))
        return len(text)

    def flush(self) -> None:
        """Pass it on."""
        self._stream.flush()


def number(value: float | None) -> str:
    """A score with four decimals; ``–`` where it is not defined."""
    return "–" if value is None else f"{value:.4f}"


def interval(found: ScoreInterval | None) -> str:
    """``0.9340–0.9700``; ``–`` where it is not known."""
    return "–" if found is None else f"{number(found.low)}–{number(found.high)}"


def size(amount: float) -> str:
    """Bytes as ``91.4 MB``, in powers of ten."""
    for unit in ("bytes", "kB", "MB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "bytes" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} GB"


def duration(seconds: float | None) -> str:
    """``42 s``, ``3 min 05 s``, ``2 h 10 min``."""
    if seconds is None:
        return "?"
    whole = round(seconds)
    if whole < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


class _Variant(Protocol):
    """How an encoder's layers are built, as a run.json has it."""

    @property
    def norm(self) -> str: ...

    @property
    def residual(self) -> str: ...

    @property
    def residual_block_size(self) -> int | None: ...

    @property
    def position_embedding(self) -> str: ...

    @property
    def activation(self) -> str: ...

    @property
    def gated(self) -> bool: ...


def encoder_words(layers: int, hidden_size: int, variant: _Variant | None) -> str:
    """``4 layers, hidden size 256, pre-norm, rotary positions, gated, residual attention``.

    What is as in BERT is not told but for the norm, and of an older run.json nothing is known.
    """
    words = [counted(layers, "layer"), f"hidden size {hidden_size}"]
    if variant is not None:
        words.append(f"{variant.norm}-norm")
        if variant.position_embedding != "learned":
            words.append(f"{variant.position_embedding} positions")
        if variant.activation != "gelu":
            words.append(variant.activation)
        if variant.gated:
            words.append("gated")
        if variant.residual != "add":
            words.append(f"residual {variant.residual}")
        if variant.residual_block_size is not None:
            words[-1] += f" in blocks of {variant.residual_block_size} sublayers"
    return ", ".join(words)


def by_trial(seconds: float) -> str:
    """What times told beforehand rest on."""
    return (
        f"Times are by a trial of {duration(seconds)} on this machine as it is now, and right within a "
        "factor of two if it stays so."
    )


def make_table(*columns: str, title: str = "", texts: int = 1) -> "Table":
    """A table whose first ``texts`` columns are text and whose others are numbers."""
    from rich import box
    from rich.table import Table

    table = Table(
        box=box.SIMPLE_HEAD, pad_edge=False, title=title or None, title_justify="left", padding=(0, 1)
    )
    for index, column in enumerate(columns):
        table.add_column(column, justify="left" if index < texts else "right", overflow="fold")
    return table


def facts_table(facts: Iterable[tuple[str, str]]) -> "Table":
    """Names and sentences, a line each."""
    from rich.table import Table

    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in facts:
        table.add_row(name, text)
    return table


def print_indented(console: "Console", text: str) -> None:
    """Each line of ``text`` with two blanks before it and before what it wraps into."""
    from rich.padding import Padding
    from rich.text import Text

    for line in text.splitlines():
        console.print(Padding(Text(line, overflow="fold"), (0, 0, 0, 2)))
