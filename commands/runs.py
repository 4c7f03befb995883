"""`enc runs`: all that was done so far."""

import sys
from typing import Any

from commands.options import AsJson, build_config, with_options
from recipes.runs_config import RunsConfig

EPILOG = "[bold]Examples[/bold]\n\nenc runs\n\nenc runs experiments --json"


@with_options(RunsConfig)
def runs(
    given: dict[str, Any],
    *,
    as_json: AsJson = False,
) -> None:
    """List all runs in a folder, and which model came of which."""
    options = build_config(RunsConfig, given)

    from commands.progress import show_progress
    from commands.runs_report import show_runs
    from commands.tables import open_console
    from recipes.runs import runs as run

    with show_progress() as progress:
        ledger = run(options, progress)
    if as_json:
        sys.stdout.write(ledger.to_json())
    else:
        show_runs(ledger, open_console())
