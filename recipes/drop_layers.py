"""Remove whole layers: a `DropLayersConfig` in, a model folder and its `Result` out."""

from compress.units import why_layers_stay
from encoder.config import EncoderConfig
from encoder.errors import ConfigError
from encoder.wording import counted
from recipes.drop_layers_config import DropLayersConfig
from recipes.observer import Observer
from recipes.pruning import prune_model
from recipes.pruning_ways import LayersWay, Wanted
from recipes.result import Result


def drop_layers(config: DropLayersConfig, observer: Observer | None = None) -> Result:
    """Choose layers by a strategy or by number, remove them, and show what that cost.

    Raises:
        ConfigError, DataError, CheckpointError, CompressionError: see ``recipes.pruning.prune_model``.
    """
    return prune_model(
        "drop-layers",
        config,
        lambda shape: want_layers(config, shape),
        lambda wanted, inputs, recovery, recorder: LayersWay(
            wanted, config.strategy, config.rows, config.targets, config.seed, inputs, recorder
        ),
        observer,
    )


def want_layers(config: DropLayersConfig, shape: EncoderConfig) -> Wanted:
    """What ``config`` asks for of a model of this shape.

    Raises:
        ConfigError: layers that it does not have, or none left.
    """
    if why := why_layers_stay(shape):
        raise ConfigError(f"{config.model}: no layer can be removed: {why}")
    count = shape.num_hidden_layers
    named = config.keep or config.drop or ()
    if missing := [str(layer) for layer in named if layer >= count]:
        option = "--keep" if config.keep else "--drop"
        raise ConfigError(
            f"{option} {','.join(missing)}: {config.model} has {counted(count, 'layer')}, counted from 0"
        )
    if config.layers is not None and config.layers > count:
        raise ConfigError(f"--layers {config.layers}: {config.model} has {counted(count, 'layer')}")
    if not named:
        return Wanted("layers", (1,) * count, 1, config.layers)
    layers = [layer for layer in range(count) if (layer in named) == (config.keep is not None)]
    if not layers:
        raise ConfigError(f"--drop {','.join(map(str, named))}: no layer would be left")
    kept = [[0] if layer in layers else [] for layer in range(count)]
    return Wanted("layers", (1,) * count, 1, len(layers), kept)
