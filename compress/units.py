"""Heads and neurons as one thing: units of a sublayer, each with its columns of the output projection.

Head h of a layer enters the output projection of attention by the columns h·K to (h+1)·K, neuron f that of
the feed-forward block by column f. What is said of one kind in terms of columns holds for the other.
"""

from typing import TYPE_CHECKING, Any, Literal

from encoder.config import EncoderConfig, LayerShape

if TYPE_CHECKING:
    from torch import nn

    from encoder.linear import Linear

Unit = Literal["heads", "neurons"]

# A pass over the rows for each unit: for the neurons of a layer that is hours.
MOST_ABLATIONS = 2048


def count_units(shape: LayerShape, unit: Unit) -> int:
    """H or F: how many units a layer has."""
    return shape.num_attention_heads if unit == "heads" else shape.intermediate_size


def unit_width(shape: LayerShape, unit: Unit) -> int:
    """K or 1: the columns of the output projection that belong to one unit."""
    return shape.head_size if unit == "heads" else 1


def unit_counts(config: EncoderConfig, unit: Unit) -> list[int]:
    """The units of each layer."""
    return [count_units(shape, unit) for shape in config.layers]


def output_projection(layer: "nn.Module", unit: Unit) -> "Linear":
    """The linear layer that adds up what the units of a layer found."""
    sublayer: Any = layer.attention if unit == "heads" else layer.feed_forward
    output: Linear = sublayer.output
    return output


def why_some_stay(config: EncoderConfig, unit: Unit) -> str | None:
    """Why at least one head, or neuron, has to stay in such an encoder; ``None`` if it can do without.

    A layer may lose all of its own. A model is of no use where none of its layers looks at the text.
    """
    other: Unit = "neurons" if unit == "heads" else "heads"
    if unit == "heads" and config.reads_first_token_only:
        return (
            "the classifier reads the first token, which would see no other in any layer, and every text "
            "would have the same answer"
        )
    if not sum(unit_counts(config, other)):
        return f"there are no {other} either, so that the layers would do nothing"
    return None


def why_not_ablated(count: int, unit: Unit) -> str | None:
    """Why the loss without each of ``count`` units is not computed; ``None`` if it is."""
    if count <= MOST_ABLATIONS:
        return None
    return (
        f"ablation would run the rows {count:,} times, once for each of the {unit}; choose fisher or gradient"
    )


def why_layers_stay(config: EncoderConfig) -> str | None:
    """Why no layer can be taken out of such an encoder; ``None`` if it can."""
    if config.residual_block_size in (None, 1):
        return None
    return (
        f"its sublayers are summed in blocks of {config.residual_block_size}, which later ones weigh as a "
        "whole: without a layer all blocks above it would be other ones"
    )
