"""What is known of each head of a model, on one text."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from encoder.config import EncoderConfig
from encoder.rows import TokenizedRows
from recipes.part import Part

if TYPE_CHECKING:
    from encoder.model import Classifier, Encoder


class HeadResult(Part):
    """A head, by its layer and its number in the unpruned model; means over the tokens of this text.

    ``effect`` is what it adds to the logit of the answer, ``importance`` what it is worth on other rows; they
    are ``None`` where there is no answer, or no rows. A head ``is_gone`` where pruning removed it.
    """

    layer: int
    head: int
    is_gone: bool = False
    entropy_bits: float | None = None
    distance_tokens: float | None = None
    special_share: float | None = None
    effect: float | None = None
    importance: float | None = None


def look_at_heads(
    config: EncoderConfig,
    encoder: "Encoder",
    model: "Classifier | None",
    row: TokenizedRows,
    output: int | None,
    is_special: Sequence[bool],
    importance: Mapping[tuple[int, int], float],
) -> tuple[tuple[HeadResult, ...], dict[tuple[int, int], NDArray[np.float32]]]:
    """What is known of each head, those that are gone too, and the weights of each that is there.

    Effects are on logit number ``output`` of ``model``, where there is one.
    """
    from compress.attention_view import describe_gaze, find_weights, head_effects

    effects = None if model is None or output is None else head_effects(model, row, output)
    heads, maps = {}, {}
    for layer, (shape, there) in enumerate(zip(config.layers, find_weights(encoder, row), strict=True)):
        gaze = describe_gaze(there, is_special)
        for place, head in enumerate(shape.heads):
            maps[layer, head] = there[place]
            heads[layer, head] = HeadResult(
                layer=layer,
                head=head,
                entropy_bits=float(gaze.entropy_bits[place]),
                distance_tokens=float(gaze.distance_tokens[place]),
                special_share=float(gaze.special_share[place]),
                effect=None if effects is None else float(effects[layer][place]),
                importance=importance.get((layer, head)),
            )
    for layer, head in _all_heads(config):
        gone = HeadResult(layer=layer, head=head, is_gone=True, importance=importance.get((layer, head)))
        heads.setdefault((layer, head), gone)
    return tuple(heads[key] for key in sorted(heads)), maps


def _all_heads(config: EncoderConfig) -> list[tuple[int, int]]:
    """The heads that there were before any pruning, as far as the shapes tell."""
    found = []
    for layer, shape in enumerate(config.layers):
        whole = config.hidden_size // shape.head_size
        found += [(layer, head) for head in range(max(whole, *shape.heads) if shape.heads else whole)]
    return found
