"""Results as tables: what was read, how good and how fast the model is, where it lies.

Nothing is ever cut to fit: a long name wraps, and where the output is not a terminal lines are as long as
they need to be.
"""

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TextIO, cast

from compress.latency import Latency, Unavailable
from recipes.result import Result, TrainingResult

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from encoder.data_report import DataReport, SplitReport

WIDTH_OF_A_FILE = 200
WIDEST = 110
# Of more classes than this only the most and the least frequent are listed.
MANY_CLASSES, MOST_FREQUENT, LEAST_FREQUENT = 12, 6, 3
METRIC_TITLES = {
    "accuracy": "accuracy",
    "macro_f1": "macro F1",
    "micro_f1": "micro F1",
    "matthews_correlation": "MCC",
    "subset_accuracy": "all labels right",
    "pearson": "Pearson",
    "spearman": "Spearman",
    "mse": "mean squared error",
}


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


def show_data(report: "DataReport", console: "Console") -> None:
    """What was read, and everything about it that the user may want to mend."""
    columns = ", ".join(f"{role} from {name!r}" for role, name in report.columns.items())
    for line in (f"Task: {report.task}.", f"Columns: {columns}.", *report.notes):
        print_indented(console, line)
    console.print(_splits_table(report.splits))
    for name, split in report.splits.items():
        for line in _remarks(split):
            print_indented(console, f"{name}: {line}")
    for overlap in report.overlaps:
        conflicts = f", {overlap.conflicts:,} of them with another label" if overlap.conflicts else ""
        found = f"{count(overlap.rows, 'row')} with a text that is also in {overlap.first}{conflicts}"
        print_indented(console, f"{overlap.second}: {found}; scores on {overlap.second} count them")


def show_result(result: Result, console: "Console") -> None:
    """The whole of a finished run."""
    console.print()
    console.print(_scores_table(result))
    if result.latency:
        console.print(_latency_table(result.latency))
        for line in _latency_remarks(result.latency):
            print_indented(console, line)
        console.print()
    console.print(_facts_table(_facts(result)))


def number(value: float | None) -> str:
    """A score with four decimals; ``–`` where it is not defined."""
    return "–" if value is None else f"{value:.4f}"


def count(amount: int, what: str) -> str:
    """``1 thread``, ``2 threads``."""
    return f"{amount:,} {what}{'' if amount == 1 else 's'}"


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


def scores_line(scores: Mapping[str, float | None]) -> str:
    """``accuracy 0.9730, macro F1 0.9721, MCC 0.9662``."""
    return ", ".join(f"{METRIC_TITLES.get(name, name)} {number(value)}" for name, value in scores.items())


def _table(*columns: str, title: str = "") -> "Table":
    """A table whose first column is text and whose others are numbers."""
    from rich import box
    from rich.table import Table

    table = Table(
        box=box.SIMPLE_HEAD, pad_edge=False, title=title or None, title_justify="left", padding=(0, 1)
    )
    for index, column in enumerate(columns):
        table.add_column(column, justify="right" if index else "left", overflow="fold")
    return table


def _splits_table(splits: Mapping[str, "SplitReport"]) -> "Table":
    table = _table("rows", *splits)
    table.add_row("in all", *(f"{split.rows:,}" for split in splits.values()))
    if any(split.label_range for split in splits.values()):
        for row in ("smallest", "mean", "largest"):
            ranges = [split.label_range for split in splits.values()]
            table.add_row(f"{row} label", *(f"{getattr(found, row):g}" if found else "–" for found in ranges))
    for name in _shown_classes(splits):
        if name is None:
            hidden = max(len(split.classes) for split in splits.values()) - MOST_FREQUENT - LEAST_FREQUENT
            table.add_row(f"… {hidden} more", *("…" for _ in splits))
        else:
            table.add_row(name, *(f"{split.classes.get(name, 0):,}" for split in splits.values()))
    if any(split.rows_without_label for split in splits.values()):
        table.add_row("no label", *(f"{split.rows_without_label:,}" for split in splits.values()))
    return table


def _shown_classes(splits: Mapping[str, "SplitReport"]) -> list[str | None]:
    """Class names in their order; of many, the most and the least frequent, ``None`` between them."""
    totals: dict[str, int] = {}
    for split in splits.values():
        for name, rows in split.classes.items():
            totals[name] = totals.get(name, 0) + rows
    if len(totals) <= MANY_CLASSES:
        return list(totals)
    by_rows = sorted(totals, key=lambda name: -totals[name])
    return [*by_rows[:MOST_FREQUENT], None, *by_rows[-LEAST_FREQUENT:]]


def _remarks(split: "SplitReport") -> Iterable[str]:
    for dropped in split.dropped:
        examples = f" ({', '.join(dropped.examples)}{', …' if dropped.rows > len(dropped.examples) else ''})"
        yield f"{count(dropped.rows, 'row')} left out: {dropped.reason}{examples if dropped.examples else ''}"
    if split.duplicates:
        yield f"{count(split.duplicates, 'row')} with the text of an earlier row"
    if split.conflicts:
        yield f"{count(split.conflicts, 'text')} with more than one label"


def _scores_table(result: Result) -> "Table":
    metrics = list(next(iter(result.scores.values()), {}))
    table = _table("score", *(METRIC_TITLES.get(name, name) for name in metrics), "rows")
    for split, scores in result.scores.items():
        report = result.data.report.splits.get(split)
        cells = [number(scores[name]) for name in metrics]
        table.add_row(split, *cells, f"{report.rows:,}" if report else "")
    return table


def _latency_table(latency: Sequence[Latency | Unavailable]) -> "Table":
    table = _table("latency", "batch", "tokens a row", "p50 ms", "p95 ms", "rows/s")
    for one in latency:
        if isinstance(one, Unavailable):
            continue
        table.add_row(
            f"{one.device}, {one.runtime}",
            str(one.shape.batch_size),
            f"{one.shape.mean_tokens:.0f}",
            f"{one.p50_ms:.2f}",
            f"{one.p95_ms:.2f}",
            f"{one.rows_per_s:,.0f}",
        )
    return table


def _latency_remarks(latency: Sequence[Latency | Unavailable]) -> Iterable[str]:
    lines: dict[str, None] = {}
    for one in latency:
        if isinstance(one, Unavailable):
            lines[f"{one.device}: {one.reason}"] = None
        else:
            threads = f", {count(one.threads, 'thread')}" if one.device == "cpu" else ""
            lines[f"{one.device}: {one.device_name}{threads}; on rows of the data, in their own lengths"] = (
                None
            )
    unsteady = [one for one in latency if isinstance(one, Latency) and not one.steady]
    if unsteady:
        lines["Other work on this machine disturbed the measurement; repeat it when it is quiet."] = None
    return lines


def _facts(result: Result) -> Iterable[tuple[str, str]]:
    source = result.parent.source if result.parent else result.model.source
    layers = count(result.model.num_hidden_layers, "layer")
    yield "model", f"{source}: {result.model.family}, {layers}, hidden size {result.model.hidden_size}"
    yield "data", f"{result.data.source}: {result.data.report.task.partition(':')[0]}"
    if result.training is not None:
        yield from _training_facts(result.training)
    if result.size is not None:
        yield (
            "size",
            f"{size(result.size.bytes_on_disk)} on disk, {result.size.parameters:,} parameters, "
            f"{result.size.parameters_without_embeddings:,} of them not embeddings",
        )
    yield "whole run", duration(result.seconds)
    if result.output is not None:
        yield "saved in", result.output


def _training_facts(training: TrainingResult) -> Iterable[tuple[str, str]]:
    share = training.trainable_parameters / training.total_parameters
    yield (
        "trained",
        f"{training.trainable_parameters:,} of {training.total_parameters:,} parameters ({share:.1%})",
    )
    if "nothing" not in training.frozen.lower():
        yield "frozen", training.frozen.removeprefix("Frozen: ")
    yield (
        "training",
        f"{duration(training.seconds)}, {training.rows_per_s:,.0f} rows/s, {training.precision} "
        f"on {training.device} with {count(training.threads, 'thread')}",
    )
    if len(training.epochs) > 1:
        yield (
            "kept",
            f"epoch {training.best_epoch} of {len(training.epochs)}, by validation {training.best_metric}",
        )
    if training.peak_memory_bytes is not None:
        gpu = training.device_memory_bytes
        yield "peak memory", size(training.peak_memory_bytes) + (f", {size(gpu)} on the GPU" if gpu else "")


def _facts_table(facts: Iterable[tuple[str, str]]) -> "Table":
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
