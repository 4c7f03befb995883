"""Remove attention heads: a `PruneHeadsConfig` in, a model folder and its `Result` out."""

from recipes.observer import Observer
from recipes.prune_heads_config import PruneHeadsConfig
from recipes.pruning import prune_model
from recipes.pruning_ways import UnitsWay, want_units
from recipes.result import Result


def prune_heads(config: PruneHeadsConfig, observer: Observer | None = None) -> Result:
    """Choose heads by importance or by name, remove them for good, and show what that cost.

    Raises:
        ConfigError, DataError, CheckpointError, CompressionError: see ``recipes.pruning.prune_model``.
    """
    least = config.min_heads_per_layer
    return prune_model(
        "prune-heads",
        config,
        lambda shape: want_units(config, shape, "heads", config.heads, least),
        lambda wanted, inputs, recovery, recorder: UnitsWay(
            wanted, config, least, inputs, recovery, recorder
        ),
        observer,
    )
