"""A chain that has ended: which model came of which, and the last beside the first."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from commands.result_tables import METRIC_TITLES
from commands.runs_report import show_tree
from commands.tables import count, duration, facts_table, number, print_indented, size
from compress.latency import Latency
from recipes.ledger import LedgerRun
from recipes.result import Result
from recipes.run import ChainOutcome
from recipes.runs import runs
from recipes.runs_config import RunsConfig

if TYPE_CHECKING:
    from rich.console import Console


def show_chain(outcome: ChainOutcome, console: "Console") -> None:
    """The whole of a chain that has ended."""
    console.print()
    show_tree(runs(RunsConfig(folder=outcome.root)), console)
    console.print()
    for line in _compare(outcome):
        print_indented(console, line)
    console.print(facts_table(_facts(outcome)))


def _compare(outcome: ChainOutcome) -> Iterator[str]:
    """The last model that was made beside the first."""
    made = [
        LedgerRun(outcome.root / step.folder, run)
        for step, run in zip(outcome.record.steps, outcome.runs, strict=False)
        if isinstance(run, Result) and run.command != "evaluate"
    ]
    if len(made) < 2:
        return
    first, last = made[0], made[-1]
    one, other = first.run, last.run
    assert isinstance(one, Result) and isinstance(other, Result)
    parts = []
    split = next((name for name in ("test", "validation") if name in one.scores and name in other.scores), "")
    metric = one.main_metric
    before, after = one.scores.get(split, {}).get(metric), other.scores.get(split, {}).get(metric)
    if before is not None and after is not None:
        title = METRIC_TITLES.get(metric, metric)
        change = f"{(after - before) * 100:+.2f} points"
        parts.append(f"{title} {number(before)} → {number(after)} on {split} ({change})")
    if first.bytes_on_disk and last.bytes_on_disk:
        ratio = first.bytes_on_disk / last.bytes_on_disk
        parts.append(f"{size(first.bytes_on_disk)} → {size(last.bytes_on_disk)} ({ratio:.1f}× smaller)")
    if (faster := _speedup(first.latencies, last.latencies)) is not None:
        parts.append(f"{faster:.1f}× as fast, one row at a time")
    if parts:
        yield f"From {first.folder.name} to {last.folder.name}: {', '.join(parts)}."


def _speedup(before: list[Latency], after: list[Latency]) -> float | None:
    """How much faster the model after is, where both were timed alike."""
    for one in before:
        for other in after:
            if (one.device_name, one.threads) == (other.device_name, other.threads):
                return one.p50_ms / other.p50_ms
    return None


def _facts(outcome: ChainOutcome) -> Iterator[tuple[str, str]]:
    record = outcome.record
    yield "recipe", f"{record.recipe}: {record.description}" if record.description else record.recipe
    yield "steps", f"{count(len(outcome.runs), 'step')} done of {outcome.total}"
    known = [step.seconds for step in record.steps if step.seconds is not None]
    yield "time", duration(sum(known))
    yield "saved in", str(outcome.root)
