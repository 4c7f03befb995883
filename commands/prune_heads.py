"""`enc prune-heads`: remove attention heads."""

from typing import Any

from commands.options import AsJson, ConfigFile, build_config, with_options
from recipes.prune_heads_config import PruneHeadsConfig

EPILOG = (
    "[bold]Examples[/bold]\n\n"
    "enc prune-heads runs/news --data bbc-news --output runs/news-40 --sparsity 0.4\n\n"
    "enc prune-heads runs/news --data bbc-news --output runs/small --max-drop 1 --recover-epochs 1\n\n"
    "enc prune-heads runs/news --data bbc-news --output runs/mine --keep '0:1,3;5:'"
)


@with_options(PruneHeadsConfig)
def prune_heads(given: dict[str, Any], *, config: ConfigFile = None, as_json: AsJson = False) -> None:
    """Remove attention heads for good: choose, remove, repair, and show what that cost and gained."""
    options = build_config(PruneHeadsConfig, given, config)

    from commands.pruning_report import run_and_show
    from recipes.prune_heads import prune_heads as run

    run_and_show(run, options, as_json=as_json)
