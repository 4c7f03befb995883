"""`enc compress`: the best model that meets a goal of score and speed."""

import sys
from typing import Any

import typer

from commands.exit_codes import GATE_FAILED
from commands.options import AsJson, ConfigFile, build_config, with_options
from recipes.compress_config import CompressConfig

EPILOG = (
    "[bold]Examples[/bold]\n\n"
    "enc compress runs/news --data bbc-news --output runs/small --max-drop 1 --target-speedup 4\n\n"
    "enc compress runs/news --data bbc-news --output runs/small --target-ms 2.5 --num-epochs 5\n\n"
    "enc compress runs/news --data bbc-news --output runs/small --target-speedup 3 --max-candidates 0"
)


@with_options(CompressConfig)
def compress(given: dict[str, Any], *, config: ConfigFile = None, as_json: AsJson = False) -> None:
    """Find the best model that is as fast as you ask and keeps the score, or say what cannot be met."""
    options = build_config(CompressConfig, given, config)

    from commands.compress_report import show_compression
    from commands.progress import run_resumable
    from commands.tables import open_console
    from recipes.compress import compress as run

    result = run_resumable(run, options)
    assert result.compress is not None
    if as_json:
        sys.stdout.write(result.to_json())
    else:
        show_compression(result, open_console())
    if result.compress.failure is not None:
        sys.stdout.flush()
        sys.stderr.write(f"{result.compress.failure}; the nearest is in {options.output}.\n")
        raise typer.Exit(GATE_FAILED)
