"""`enc freeze-sweep`: measure how many layers can be frozen before the score suffers."""

import shlex
import sys
from typing import Any

from commands.options import AsJson, ConfigFile, build_config, with_options
from recipes.freeze_sweep_config import FreezeSweepConfig

EPILOG = (
    "[bold]Examples[/bold]\n\n"
    "enc freeze-sweep --model minilm-l6 --data bbc-news --output runs/sweep\n\n"
    "enc freeze-sweep --model minilm-l6 --data reviews.csv --output runs/sweep --points 0,3,6 --seeds 3\n\n"
    "enc freeze-sweep --config train.toml --output runs/sweep --search --max-drop 1"
)


@with_options(FreezeSweepConfig)
def freeze_sweep(given: dict[str, Any], *, config: ConfigFile = None, as_json: AsJson = False) -> None:
    """Measure how many layers can be frozen: train every point, judge the curve, keep the best choice."""
    options = build_config(FreezeSweepConfig, given, config)

    from commands.freeze_sweep_report import show_sweep
    from commands.progress import run_resumable
    from commands.tables import open_console
    from recipes.freeze_sweep import freeze_sweep as run

    result = run_resumable(run, options)
    if as_json:
        sys.stdout.write(result.to_json())
        return
    console = open_console()
    show_sweep(result, console)
    if options.keep != "none":
        folder = shlex.quote(str(options.output))
        texts = '"a text" "its pair"' if result.model.pair else '"some text"'
        console.print(f"\nTry it: enc predict {folder} {texts}", markup=False, soft_wrap=True)
