"""`enc drop-layers`: remove whole layers."""

from typing import Any

from commands.options import AsJson, ConfigFile, build_config, with_options
from recipes.drop_layers_config import DropLayersConfig

EPILOG = (
    "[bold]Examples[/bold]\n\n"
    "enc drop-layers runs/news --data bbc-news --output runs/four --layers 4 --recover-epochs 1\n\n"
    "enc drop-layers runs/news --data bbc-news --output runs/low --drop 4,5"
)


@with_options(DropLayersConfig)
def drop_layers(given: dict[str, Any], *, config: ConfigFile = None, as_json: AsJson = False) -> None:
    """Remove whole layers: choose, remove, train again, and show what that cost and gained."""
    options = build_config(DropLayersConfig, given, config)

    from commands.pruning_report import run_and_show
    from recipes.drop_layers import drop_layers as run

    run_and_show(run, options, as_json=as_json)
