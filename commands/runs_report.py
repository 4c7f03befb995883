"""The ledger as a table of runs and a tree of models."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from commands.bench_report import milliseconds
from commands.tables import make_table, number, print_indented, size
from encoder.metrics import METRIC_TITLES
from recipes.runs import Entry, Ledger, Score

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


# On fewer columns the list leaves out what the tree says too, and where data lies.
NARROW = 100


def show_runs(ledger: Ledger, console: "Console") -> None:
    """The newest run first; then which model came of which."""
    newest = ledger.newest_first()
    if not newest:
        print_indented(console, f"No runs in {ledger.folder}: enc finetune --output {ledger.folder}/NAME …")
        return
    console.print()
    console.print(_runs_table(newest, ledger.folder, narrow=console.width < NARROW))
    show_tree(ledger, console)


def show_tree(ledger: Ledger, console: "Console") -> None:
    """Which model came of which, with what is known of each."""
    console.print(_tree_table(ledger))
    remarks = [
        "p50: at batch size 1. In brackets what it is of the first run of its line that can be compared: "
        "how many times as fast, and the share of its size; ~: timed in separate runs, not in turns.",
        "Brackets are missing where machine, threads or the timed rows differ.",
    ]
    if any(entry.latency is not None and entry.latency.disturbed for entry in ledger.runs):
        remarks.append("*: measured while the machine was busy with other things; not to be relied on.")
    for line in remarks:
        print_indented(console, line)


def _runs_table(entries: Sequence[Entry], folder: str, *, narrow: bool) -> "Table":
    heads = ["run", "made", "by", "on", "score", "95% interval"]
    if narrow:
        heads.remove("by")
    table = make_table(*heads, texts=len(heads) - 2)
    table.collapse_padding = narrow
    for entry in entries:
        cells = [
            as_path(entry, folder),
            _day(entry.created),
            entry.command or "",
            _data(entry, narrow=narrow),
        ]
        if narrow:
            del cells[2]
        table.add_row(*cells, *_score_in_full(entry.score))
    for column in table.columns:
        column.no_wrap = column.header in ("made", "score", "95% interval")
    return table


def _day(moment: datetime | None) -> str:
    """In local time; the hour where it was this year, otherwise the year, as `ls -l` does."""
    if moment is None:
        return ""
    moment = moment.astimezone()
    return moment.strftime("%m-%d %H:%M" if moment.year == datetime.now().year else "%Y-%m-%d")


def _data(entry: Entry, *, narrow: bool) -> str:
    """The data, and which split of it was scored where that is not test."""
    name = entry.data or ""
    if narrow and name.startswith(("/", ".", "~")):
        name = Path(name).name
    if entry.score is None or entry.score.split == "test":
        return name
    return f"{name}\n({entry.score.split})" if narrow else f"{name} ({entry.score.split})"


def _score_in_full(score: Score | None) -> tuple[str, str]:
    """With the name of the metric, and the interval."""
    if score is None:
        return "", ""
    named = f"{METRIC_TITLES.get(score.metric, score.metric)} {number(score.value)}"
    known = score.low is not None and score.high is not None
    return named, f"{number(score.low)}–{number(score.high)}" if known else ""


def _tree_table(ledger: Ledger) -> "Table":
    from rich.text import Text

    table = make_table("model", "by", "score", "p50 ms", "size", texts=2)
    for entry, branch in zip(ledger.runs, branches(ledger.runs), strict=True):
        name = as_path(entry, ledger.folder)
        outside = entry.folder is None
        latency = entry.latency
        p50 = "" if latency is None else milliseconds(latency.p50_ms) + (" *" if latency.disturbed else "")
        table.add_row(
            Text(branch + name, style="dim" if outside else "", overflow="fold"),
            "elsewhere" if outside else entry.command or "",
            "–" if entry.score is None else number(entry.score.value),
            _with_ratio(p50, entry.speedup, "×", about=entry.speedup_how == "apart"),
            _with_ratio(size(entry.bytes_on_disk) if entry.bytes_on_disk else "", entry.size_ratio, ""),
        )
    for column in table.columns[1:]:
        column.no_wrap = True
    return table


def _with_ratio(value: str, ratio: float | None, unit: str, *, about: bool = False) -> str:
    if not value:
        return "–"
    return value if ratio is None else f"{value} ({'~' if about else ''}{ratio:.2f}{unit})"


def as_path(entry: Entry, folder: str) -> str:
    """The name of an entry as a reader of ``folder`` would say it: without ``folder`` before it."""
    if entry.folder is None:
        return entry.name
    path, base = Path(entry.folder), Path(folder).expanduser()
    return str(path.relative_to(base)) if path != base and path.is_relative_to(base) else str(path)


def branches(entries: Sequence[Entry]) -> list[str]:
    """What is drawn before each name: ``├─`` and ``└─``, with ``│`` where a branch goes on below."""
    drawn: list[str] = []
    goes_on: dict[int, bool] = {}  # depth → whether there is a later one of that depth under the same parent
    for entry in reversed(entries):
        for depth in [depth for depth in goes_on if depth > entry.depth]:
            del goes_on[depth]
        if entry.depth == 0:
            goes_on.clear()
            drawn.append("")
            continue
        before = "".join("│ " if goes_on.get(depth) else "  " for depth in range(1, entry.depth))
        drawn.append(before + ("├─ " if goes_on.get(entry.depth) else "└─ "))
        goes_on[entry.depth] = True
    return drawn[::-1]
