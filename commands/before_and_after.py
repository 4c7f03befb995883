"""A model before and after something was done to it: rows of one table."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from commands.tables import make_table, number
from compress.latency import Latency, Unavailable
from encoder.metrics import METRIC_TITLES
from encoder.wording import signed_points
from recipes.pruning_result import SpeedupResult
from recipes.result import Result

if TYPE_CHECKING:
    from rich.table import Table


def make_before_and_after() -> "Table":
    """The table without rows; the last column says what changed."""
    table = make_table("", "before", "after", "", title="")
    table.columns[-1].justify = "left"
    return table


def add_score(table: "Table", result: Result, split: str, scores_before: Mapping[str, float | None]) -> None:
    """The main score of ``split``."""
    metric = result.main_metric
    before, after = scores_before.get(metric), result.scores[split].get(metric)
    change = "" if before is None or after is None else f"{signed_points(after - before)} points"
    table.add_row(f"{METRIC_TITLES.get(metric, metric)}, {split}", number(before), number(after), change)


def add_speedups(
    table: "Table",
    speedups: Iterable[SpeedupResult],
    before: Sequence[Latency | Unavailable],
    after: Sequence[Latency | Unavailable],
) -> None:
    """A row for each of ``speedups``, with the latencies that it compares."""
    for speedup in speedups:
        name = f"{speedup.device}, batch {speedup.shape.batch_size}, p50"
        table.add_row(name, *_both_times(before, after, speedup), say_speedup(speedup))


def _both_times(
    before: Sequence[Latency | Unavailable], after: Sequence[Latency | Unavailable], speedup: SpeedupResult
) -> Iterator[str]:
    """The p50 before and after of what ``speedup`` compares."""
    for latencies in (before, after):
        found = (
            one
            for one in latencies
            if isinstance(one, Latency) and (one.device, one.shape) == (speedup.device, speedup.shape)
        )
        yield next((f"{one.p50_ms:.2f} ms" for one in found), "–")


def say_speedup(speedup: SpeedupResult) -> str:
    """``1.31× (1.25–1.38)``; where it may be none, ``no real gain`` before it."""
    one = speedup.speedup
    words = {"faster": "", "slower": "slower: "}.get(speedup.verdict, "no real gain: ")
    return f"{words}{one.ratio:.2f}× ({one.low:.2f}–{one.high:.2f})"
