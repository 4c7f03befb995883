"""A sweep as a table, a curve and a verdict; then the model that was kept."""

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from commands.result_tables import SHOWN_SECONDS, show_result
from commands.tables import duration, make_table, number, print_indented, size
from encoder.metrics import METRIC_TITLES
from encoder.wording import counted
from recipes.result import FreezeSweep, Result, SweepPoint

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

PLOT_HEIGHT = 10
PLOT_WIDTH = 62  # of the columns between the axis and the last point, at most
NARROW = 100


def show_sweep(result: Result, console: "Console") -> None:
    """The whole of a finished sweep."""
    sweep = result.sweep
    assert sweep is not None
    console.print()
    console.print(_table(sweep, narrow=console.width < NARROW))
    for line in _remarks(sweep):
        print_indented(console, line)
    console.print()
    for line in plot(sweep.points, METRIC_TITLES.get(sweep.metric, sweep.metric)):
        console.print(line, markup=False, highlight=False, no_wrap=True)
    console.print()
    for sentence in sweep.verdict.sentences:
        print_indented(console, sentence)
    console.print()
    kept = f"k = {sweep.verdict.chosen}, seed {sweep.kept_seed}"
    gone = ", which was not kept" if result.config.get("keep") == "none" else ""
    latency = "; its latency is that of every k" if result.latency else ""
    console.print(f"The model of {kept}{gone}{latency}:", markup=False)
    show_result(result, console)


def _table(sweep: FreezeSweep, *, narrow: bool) -> "Table":
    """A line a point; times and memory also as shares of those of k = 0. A narrow one has no losses."""
    on_gpu = any(point.device_memory_bytes is not None for point in sweep.points)
    title = METRIC_TITLES.get(sweep.metric, sweep.metric)
    several = len(sweep.seeds) > 1
    heads = ["k", "trains", title, "loss", "training", "GPU memory" if on_gpu else "memory", ""]
    if narrow:
        heads.remove("loss")
    table = make_table(*heads, texts=0)
    table.columns[-1].justify = "left"
    table.collapse_padding = narrow
    memories = {p.k: p.device_memory_bytes if on_gpu else p.added_memory_bytes for p in sweep.points}
    seconds = {point.k: point.seconds for point in sweep.points}
    for point in sweep.points:
        memory = memories[point.k]
        spread = f" ± {number(point.spread)}" if several and point.spread is not None else ""
        cells = [
            str(point.k),
            _millions(point.trainable_parameters),
            number(point.mean) + spread,
            number(point.loss),
            duration(point.seconds) + _share(point.seconds, seconds.get(0)),
            "–" if memory is None else size(memory) + _share(memory, memories.get(0)),
            _mark(point, sweep),
        ]
        if narrow:
            del cells[3]
        table.add_row(*cells)
    for column in table.columns:
        column.no_wrap = True
    return table


def _millions(amount: int) -> str:
    return f"{amount / 1e6:.1f} M" if amount >= 1e5 else f"{amount:,}"


def _share(value: float, of: float | None) -> str:
    return f" ({value / of:.2f})" if of else ""


def _mark(point: SweepPoint, sweep: FreezeSweep) -> str:
    """What was found of it; with ``?`` where it is fine as measured but the noise leaves that open."""
    what: str = "" if point.judgement == "fine" else point.judgement
    if point.k == sweep.verdict.chosen:
        what = "← chosen"
    if point.sure or point.judgement == "undecided":
        return what
    return f"{what or point.judgement} ?"


def _remarks(sweep: FreezeSweep) -> Iterable[str]:
    scored = f"{counted(sweep.rows, f'{sweep.split} row')}, {counted(len(sweep.seeds), 'seed')} a point"
    brackets = "; in brackets the share of k = 0" if any(point.k == 0 for point in sweep.points) else ""
    yield f"k: layers frozen, with the embeddings. Scores on {scored}{brackets}."
    if any("?" in _mark(point, sweep) for point in sweep.points):
        yield "?: within the limit as measured, which the noise leaves open."
    if sweep.frozen_seconds >= SHOWN_SECONDS:
        yield f"Frozen layers were computed once for all points, which took {duration(sweep.frozen_seconds)}."
    added = [point.added_memory_bytes for point in sweep.points]
    peaks = [point.peak_memory_bytes for point in sweep.points]
    if None in added or None in peaks:
        yield "Memory is not known: this system keeps one peak for the whole process."
    else:
        beside = max((peak or 0) - (more or 0) for peak, more in zip(peaks, added, strict=True))
        yield (
            f"Memory: what training took beside {size(beside)} of libraries, model, rows and what is kept of "
            "the frozen layers."
        )


def plot(points: Sequence[SweepPoint], title: str) -> list[str]:
    """Means as dots above their k, the seeds as bars, in lines of at most 80 columns."""
    known = [point for point in points if point.mean is not None]
    if len(known) < 2:
        return []
    every = [score for point in known for score in point.scores if score is not None]
    low, high = min(every), max(every)
    if math.isclose(low, high, abs_tol=1e-9):
        low, high = low - 0.005, high + 0.005
    last = max(point.k for point in points)
    step = max(1, min(6, PLOT_WIDTH // max(1, last)))
    width = last * step + 3
    rows = [[" "] * width for _ in range(PLOT_HEIGHT)]

    def line(value: float) -> int:
        return round((high - value) / (high - low) * (PLOT_HEIGHT - 1))

    for point in known:
        assert point.mean is not None
        column = point.k * step + 1
        found = [score for score in point.scores if score is not None]
        for row in range(line(max(found)), line(min(found)) + 1):
            rows[row][column] = "│"
        rows[line(point.mean)][column] = {"hurts": "○", "undecided": "◌"}.get(point.judgement, "●")
    lines = [f"  {title}"]
    for index, cells in enumerate(rows):
        value = high - (high - low) * index / (PLOT_HEIGHT - 1)
        label = f"{value:.4f}" if index in (0, PLOT_HEIGHT // 2, PLOT_HEIGHT - 1) else ""
        lines.append(f"  {label:>7} {'┤' if label else '│'}{''.join(cells)}".rstrip())
    axis = ["─"] * width
    labels = [" "] * (width + 3)
    for point in points:
        axis[point.k * step + 1] = "┴"
        if not "".join(labels[max(0, point.k * step) : point.k * step + len(str(point.k)) + 1]).strip():
            labels[point.k * step + 1 : point.k * step + 1 + len(str(point.k))] = str(point.k)
    lines.append(f"  {'':>7} └{''.join(axis)}")
    lines.append(f"  {'k':>7}  {''.join(labels)}".rstrip())
    meaning = {"●": "fine", "◌": "undecided", "○": "hurts"}
    shown = {mark for mark in meaning if any(mark in line for line in lines)}
    legend = " · ".join(f"{mark} {word}" for mark, word in meaning.items() if mark in shown)
    bars = " · │ from the lowest seed to the highest" if any(point.spread for point in known) else ""
    lines.append(f"  {'':>7}  {legend}{bars}")
    return lines
