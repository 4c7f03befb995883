"""`enc finetune`: fine-tune an encoder on labelled texts."""

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from commands.options import AsJson, build_config, with_options
from recipes.finetune_config import FinetuneConfig

EPILOG = (
    "[bold]Examples[/bold]\n\n"
    "enc finetune --model minilm-l6 --data bbc-news --output runs/news\n\n"
    "enc finetune --model minilm-l6 --data reviews.csv --output runs/reviews --freeze-layers 3\n\n"
    "enc finetune --config train.toml --seed 1 --output runs/seed-1"
)


@with_options(FinetuneConfig)
def finetune(
    given: dict[str, Any],
    *,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            metavar="FILE",
            help="A TOML file of these options (batch_size = 16). The command line wins.",
            show_default=False,
            rich_help_panel="Model and data",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Fine-tune an encoder on labelled texts: train, score, measure, save."""
    options = build_config(FinetuneConfig, given, config)

    from commands.progress import show_progress
    from commands.report import show_result
    from commands.tables import open_console
    from recipes.finetune import finetune as run

    try:
        with show_progress() as progress:
            result = run(options, progress)
    except KeyboardInterrupt:
        work = options.output.with_name(options.output.name + ".unfinished")
        if work.exists():
            sys.stderr.write(f"\nInterrupted; {work} keeps what was done. Add --resume to continue.\n")
            raise typer.Exit(130) from None
        raise
    if as_json:
        sys.stdout.write(result.to_json())
        return
    console = open_console()
    show_result(result, console)
    folder = shlex.quote(str(options.output))
    texts = '"a text" "its pair"' if result.model.pair else '"some text"'
    console.print(f"\nTry it: enc predict {folder} {texts}", markup=False, soft_wrap=True)
