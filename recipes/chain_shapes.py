"""The shape of the model after each step of a chain, known before any is run: from shapes and options alone.

Needs no torch, so that options that do not fit a model are told before it is loaded.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from encoder.config import EncoderConfig, LayerShape
from encoder.errors import CompressionError, ConfigError
from recipes.chain import Step

# about: how many units each layer keeps is known, not which. uneven: how many all keep together, so that
# bytes are known but for a few. roughly: of layers that differ, which ones stay is not known.
# at most: it may become smaller.
Certainty = Literal["exact", "about", "uneven", "roughly", "at most"]
ORDER: tuple[Certainty, ...] = ("exact", "about", "uneven", "roughly", "at most")


@dataclass(frozen=True)
class Shape:
    """The shape that a model will have, and how sure that is."""

    config: EncoderConfig
    certainty: Certainty = "exact"


def reshape(step: Step, before: Shape, known: Mapping[str, Shape]) -> Shape:
    """The shape of the model that ``step`` makes of one of the shape ``before``.

    ``known`` are the shapes after earlier steps, by folder name: one of them may be the student of this one.

    Raises:
        ConfigError, CompressionError: its options do not fit that shape.
    """
    if (student := known.get(getattr(step.options, "student", None) or "")) is not None:
        return student
    config, certainty = SHAPES[step.command](step.options, before.config)
    fewer = config.num_hidden_layers < before.config.num_hidden_layers
    if fewer and before.certainty == "uneven":
        certainty = max(certainty, "roughly", key=ORDER.index)
    return Shape(config, max(before.certainty, certainty, key=ORDER.index))


def _finetuned(options: Any, config: EncoderConfig) -> tuple[EncoderConfig, Certainty]:
    from recipes.finetune import check_shape

    return check_shape(options, config), "exact"


def _swept(options: Any, config: EncoderConfig) -> tuple[EncoderConfig, Certainty]:
    from recipes.freeze_sweep import check_shape

    return check_shape(options, config), "exact"


def _without_heads(options: Any, config: EncoderConfig) -> tuple[EncoderConfig, Certainty]:
    return _without_units(options, config, "heads", options.heads, options.min_heads_per_layer)


def _without_neurons(options: Any, config: EncoderConfig) -> tuple[EncoderConfig, Certainty]:
    return _without_units(options, config, "neurons", options.neurons, options.min_neurons_per_layer)


def _without_units(
    options: Any, config: EncoderConfig, unit: Literal["heads", "neurons"], number: int | None, least: int
) -> tuple[EncoderConfig, Certainty]:
    from compress.selection import select_units
    from recipes.pruning_ways import want_units

    wanted = want_units(options, config, unit, number, least)
    if wanted.keep is None:  # as many as max_drop allows, at least one
        return config, "at most"
    kept = wanted.kept
    certainty: Certainty = "exact"
    if kept is None:
        blank = [np.zeros(count) for count in wanted.counts]
        kept = select_units(blank, wanted.keep, scope="layer", min_per_layer=least)
        if options.scope == "global":
            certainty = "uneven"
        elif unit == "heads":
            certainty = "about"
    layers = zip(config.layers, kept, strict=True)
    if unit == "heads":
        made = [_with(shape, heads=tuple(shape.heads[place] for place in places)) for shape, places in layers]
    else:
        made = [_with(shape, intermediate_size=len(places)) for shape, places in layers]
    return config.model_copy(update={"layers": tuple(made)}), certainty


def _with(shape: LayerShape, **sizes: Any) -> LayerShape:
    return shape.model_copy(update=sizes)


def _without_layers(options: Any, config: EncoderConfig) -> tuple[EncoderConfig, Certainty]:
    from recipes.drop_layers import want_layers

    wanted = want_layers(options, config)
    if wanted.keep is None:
        return config, "at most"
    if wanted.kept is not None:
        return _keep(config, [layer for layer, places in enumerate(wanted.kept) if places]), "exact"
    return _some_layers(config, wanted.keep)


def _some_layers(config: EncoderConfig, keep: int) -> tuple[EncoderConfig, Certainty]:
    """``keep`` layers, whichever they are."""
    alike = len({(len(one.heads), one.head_size, one.intermediate_size) for one in config.layers}) == 1
    certainty: Certainty = "roughly"
    if alike:
        certainty = "exact" if len(set(config.layers)) == 1 else "about"
    return _keep(config, list(range(keep))), certainty


def _keep(config: EncoderConfig, layers: list[int]) -> EncoderConfig:
    return config.model_copy(update={"layers": tuple(config.layers[layer] for layer in layers)})


def _student(options: Any, config: EncoderConfig) -> tuple[EncoderConfig, Certainty]:
    from compress.layer_choice import alternate_layers, bottom_layers
    from compress.student import thinner_config
    from encoder.model_folder import peek_config
    from recipes.distill_student import check_layers

    check_layers(options, config)
    if options.student is not None:
        return peek_config(options.student), "exact"
    if options.thinner:
        sizes = {"hidden_size": options.hidden_size, "intermediate_size": options.intermediate_size}
        try:
            made = thinner_config(config, num_layers=options.layers, num_heads=options.heads, **sizes)
        except CompressionError as error:
            raise ConfigError(f"--hidden-size and --heads: {error}") from error
        return made, "exact"
    if options.named_layers is not None:
        return _keep(config, list(options.named_layers)), "exact"
    count, keep = config.num_hidden_layers, options.layers
    if options.progressive == 1 and options.init_layers == "alternate":
        return _keep(config, alternate_layers(count, keep)), "exact"
    if options.init_layers == "first":
        return _keep(config, bottom_layers(keep)), "exact"
    if options.init_layers in ("last", "top"):
        return _keep(config, list(range(count - keep, count))), "exact"
    return _some_layers(config, keep)


def _exported(options: Any, config: EncoderConfig) -> tuple[EncoderConfig, Certainty]:
    if options.format == "onnx":
        return config, "exact" if options.prune_vocab is None else "at most"
    from compress.standard_shape import standard_config

    return standard_config(config), "exact" if options.prune_vocab is None else "at most"


def _compressed(options: Any, config: EncoderConfig) -> tuple[EncoderConfig, Certainty]:
    return config, "at most"


def _unchanged(options: Any, config: EncoderConfig) -> tuple[EncoderConfig, Certainty]:
    return config, "exact"


SHAPES: Mapping[str, Callable[[Any, EncoderConfig], tuple[EncoderConfig, Certainty]]] = {
    "finetune": _finetuned,
    "freeze-sweep": _swept,
    "prune-heads": _without_heads,
    "prune-neurons": _without_neurons,
    "drop-layers": _without_layers,
    "distill": _student,
    "compress": _compressed,
    "export": _exported,
    **dict.fromkeys(("evaluate", "bench", "profile", "probe"), _unchanged),
}
