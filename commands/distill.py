"""`enc distill`: teach a smaller model what a fine-tuned one knows."""

import shlex
import sys
from typing import Any

from commands.options import AsJson, ConfigFile, build_config, with_options
from recipes.distill_config import DistillConfig

EPILOG = (
    "[bold]Examples[/bold]\n\n"
    "enc distill runs/news --data bbc-news --output runs/three --layers 3\n\n"
    "enc distill runs/news --data bbc-news --output runs/odd --init-layers 1,3,5 --unlabeled more.txt\n\n"
    "enc distill runs/big --data reviews.csv --output runs/small --student minilm-l6"
)


@with_options(DistillConfig)
def distill(given: dict[str, Any], *, config: ConfigFile = None, as_json: AsJson = False) -> None:
    """Teach a smaller model what a fine-tuned one knows, and show what the teacher was worth."""
    options = build_config(DistillConfig, given, config)

    from commands.distill_report import show_distillation
    from commands.progress import run_resumable
    from commands.tables import open_console
    from recipes.distill import distill as run

    result = run_resumable(run, options)
    if as_json:
        sys.stdout.write(result.to_json())
        return
    console = open_console()
    show_distillation(result, console)
    folder = shlex.quote(str(options.output))
    console.print(
        f"\nCompare it: enc bench {shlex.quote(options.model)} {folder}", markup=False, soft_wrap=True
    )
