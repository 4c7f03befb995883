"""A chain that has ended: which model came of which, and the headline of its report."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from commands.runs_report import show_tree
from commands.tables import duration, facts_table, print_indented
from encoder.wording import counted
from recipes.report import report
from recipes.report_config import ReportConfig
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
    headline = report(ReportConfig(folder=outcome.root)).headline
    if headline is not None:
        for line in (f"{headline.sentence}.", *headline.remarks):
            print_indented(console, line)
    console.print(facts_table(_facts(outcome)))


def _facts(outcome: ChainOutcome) -> Iterator[tuple[str, str]]:
    record = outcome.record
    yield "recipe", f"{record.recipe}: {record.description}" if record.description else record.recipe
    yield "steps", f"{counted(len(outcome.runs), 'step')} done of {outcome.total}"
    known = [step.seconds for step in record.steps if step.seconds is not None]
    yield "time", duration(sum(known))
    yield "saved in", str(outcome.root)
