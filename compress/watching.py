"""What a classifier computes on the way to its logits, kept while a context lasts.

Hidden states are numbered as Transformers numbers them: 0 are the embeddings, i is what layer i − 1 made and
layer i reads, so that L layers have L + 1 of them. Of the last only each row's first token exists, as no
other is computed, unless the classifier looks at all of them.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.utils.hooks import RemovableHandle

from encoder.linear import Linear
from encoder.model import Classifier


@dataclass(frozen=True)
class Points:
    """What to keep: hidden states by number, and of layers, from 0, their queries, keys and values."""

    hidden: frozenset[int] = frozenset()
    projections: frozenset[int] = frozenset()


@dataclass
class Watched:
    """What the latest forward pass made, on a batch of B rows and N tokens, those that fill it up included.

    ``hidden``: [N, D] each, the last [B, D]. ``projections``: [N, 3·H·K] each, queries, keys, values.
    """

    hidden: dict[int, Tensor] = field(default_factory=dict)
    projections: dict[int, Tensor] = field(default_factory=dict)


@contextmanager
def watched(model: Classifier, points: Points) -> Iterator[Watched]:
    """Within the context every forward pass of ``model`` leaves what ``points`` name in what is yielded.

    A pass in inference mode, as predictions are, leaves nothing.
    """
    seen = Watched()
    hooks: list[RemovableHandle] = []
    try:
        hooks += [
            _state_at(model, number).register_forward_hook(_keep_state(seen, number))
            for number in points.hidden
        ]
        hooks += [
            _projections_of(model, layer).register_forward_hook(_keep_projections(seen, layer))
            for layer in points.projections
        ]
        yield seen
    finally:
        for handle in hooks:
            handle.remove()


def _state_at(model: Classifier, number: int) -> torch.nn.Module:
    """The module whose output hidden state ``number`` is."""
    encoder = model.encoder
    if number == 0:
        return encoder.embeddings
    if number == len(encoder.layers):
        return encoder.final_residual if encoder.final_norm is None else encoder.final_norm
    reader: torch.nn.Module = encoder.layers[number].attention_residual  # type: ignore[assignment]
    return reader


def _projections_of(model: Classifier, layer: int) -> Linear:
    attention: Any = model.encoder.layers[layer].attention
    projections: Linear = attention.qkv
    return projections


def _keep_state(seen: Watched, number: int) -> Any:
    def keep(module: object, arguments: object, output: Tensor) -> None:
        if not torch.is_inference_mode_enabled():
            seen.hidden[number] = output

    return keep


def _keep_projections(seen: Watched, layer: int) -> Any:
    def keep(module: Any, arguments: tuple[Any, ...], output: Tensor) -> None:
        if torch.is_inference_mode_enabled():
            return
        wanted: slice = arguments[1] if len(arguments) > 1 else slice(None)
        if wanted.stop is not None:  # the queries of first tokens, in a last layer
            return
        if wanted.start is not None:  # keys and values of all tokens, there; the other queries are missing
            query = module(arguments[0], slice(0, wanted.start))
            output = torch.cat([query, output], dim=1)
        seen.projections[layer] = output

    return keep
