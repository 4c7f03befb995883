"""`enc depth`: what becomes of tokens and gradients with depth."""

import sys
from typing import Any

from commands.options import AsJson, build_config, with_options
from recipes.depth_config import DepthConfig

EPILOG = (
    "[bold]Examples[/bold]\n\n"
    "enc depth runs/pre-norm runs/post-norm --corpus bbc-news --output runs/depth\n\n"
    "enc depth runs/news --data bbc-news\n\n"
    "enc depth pre.toml attention.toml    (random weights, random tokens)\n\n"
    "enc depth --pipeline stages=4,interleave=2,microbatches=8,blocks=4"
)


@with_options(DepthConfig)
def depth(
    given: dict[str, Any],
    *,
    as_json: AsJson = False,
) -> None:
    """See how the residual stream, what layers add to it, gradients and ranks change with depth."""
    options = build_config(DepthConfig, given)

    from commands.depth_report import show_depth
    from commands.progress import say_if_not_kept, show_progress
    from commands.tables import open_console
    from recipes.depth import depth as run

    with show_progress() as progress:
        result = run(options, progress)
    if as_json:
        sys.stdout.write(result.to_json())
        return
    show_depth(result, open_console())
    say_if_not_kept(result.output)
