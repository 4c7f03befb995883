"""`enc run`: a whole chain of commands, described by a recipe."""

import sys
from typing import Any

import typer

from commands.exit_codes import GATE_FAILED, INTERRUPTED
from commands.options import AsJson, build_config, with_options
from recipes.run_config import RunConfig

EPILOG = (
    "[bold]Examples[/bold]\n\n"
    "enc run quickstart --output runs/quickstart\n\n"
    "enc run mine.toml --model minilm-l6 --data reviews.csv --set distill.layers=3 --dry-run\n\n"
    "enc recipes list"
)


@with_options(RunConfig)
def run(given: dict[str, Any], *, as_json: AsJson = False) -> None:
    """Run a chain of commands, as fine-tune, prune, distill, export. What is done already is not redone."""
    options = build_config(RunConfig, given)

    from commands.progress import show_progress
    from commands.report import write_report
    from commands.run_report import show_chain
    from commands.tables import open_console
    from recipes.run import run as run_chain

    if options.dry_run:
        _show_plan(options, as_json=as_json)
        return
    try:
        with show_progress() as progress:
            outcome = run_chain(options, progress)
            progress.stage("Writing the report")
            page = write_report(outcome.root)
    except KeyboardInterrupt:
        without = ", without --force," if options.force else ""
        sys.stderr.write(f"\nInterrupted. The same command{without} goes on where it was.\n")
        raise typer.Exit(INTERRUPTED) from None
    if as_json:
        sys.stdout.write(outcome.record.to_json())
    else:
        show_chain(outcome, open_console())
        sys.stdout.write(f"\n{page}\n")
    if outcome.failure is not None:
        sys.stdout.flush()
        sys.stderr.write(f"{outcome.failure}.\n")
        raise typer.Exit(GATE_FAILED)


def _show_plan(options: RunConfig, *, as_json: bool) -> None:
    from commands.plan_report import show_plan
    from commands.progress import show_progress
    from commands.tables import open_console
    from recipes.plan import make_plan

    with show_progress() as progress:
        plan = make_plan(options, progress)
    if as_json:
        sys.stdout.write(plan.to_json())
    else:
        show_plan(plan, open_console())
