"""`enc prune-neurons`: remove feed-forward neurons."""

from typing import Any

from commands.options import AsJson, ConfigFile, build_config, with_options
from recipes.prune_neurons_config import PruneNeuronsConfig

EPILOG = (
    "[bold]Examples[/bold]\n\n"
    "enc prune-neurons runs/news --data bbc-news --output runs/half --sparsity 0.5 --recover-epochs 1\n\n"
    "enc prune-neurons runs/news --data bbc-news --output runs/small --max-drop 1"
)


@with_options(PruneNeuronsConfig)
def prune_neurons(given: dict[str, Any], *, config: ConfigFile = None, as_json: AsJson = False) -> None:
    """Remove feed-forward neurons for good: choose, remove, repair, and show what that cost and gained."""
    options = build_config(PruneNeuronsConfig, given, config)

    from commands.pruning_report import run_and_show
    from recipes.prune_neurons import prune_neurons as run

    run_and_show(run, options, as_json=as_json)
