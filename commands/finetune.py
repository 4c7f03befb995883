"""`enc finetune`: fine-tune an encoder on labelled texts."""

import shlex
import sys
from typing import Any

from commands.options import AsJson, ConfigFile, build_config, with_options
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
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Fine-tune an encoder on labelled texts: train, score, measure, save."""
    options = build_config(FinetuneConfig, given, config)

    from commands.progress import run_resumable
    from commands.result_tables import show_result
    from commands.tables import open_console
    from recipes.finetune import finetune as run

    result = run_resumable(run, options)
    if as_json:
        sys.stdout.write(result.to_json())
        return
    console = open_console()
    show_result(result, console)
    folder = shlex.quote(str(options.output))
    texts = '"a text" "its pair"' if result.model.pair else '"some text"'
    console.print(f"\nTry it: enc predict {folder} {texts}", markup=False, soft_wrap=True)
