"""Remove feed-forward neurons: a `PruneNeuronsConfig` in, a model folder and its `Result` out."""

from recipes.observer import Observer
from recipes.prune_neurons_config import PruneNeuronsConfig
from recipes.pruning import prune_model
from recipes.pruning_ways import UnitsWay, want_units
from recipes.result import Result


def prune_neurons(config: PruneNeuronsConfig, observer: Observer | None = None) -> Result:
    """Choose neurons by importance or by number, remove them for good, and show what that cost.

    Raises:
        ConfigError, DataError, CheckpointError, CompressionError: see ``recipes.pruning.prune_model``.
    """
    least = config.min_neurons_per_layer
    return prune_model(
        "prune-neurons",
        config,
        lambda shape: want_units(config, shape, "neurons", config.neurons, least),
        lambda wanted, inputs, recovery, recorder: UnitsWay(
            wanted, config, least, inputs, recovery, recorder
        ),
        observer,
    )
