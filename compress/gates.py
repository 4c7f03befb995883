"""Gates: a factor on what a head or a neuron contributes, while a context lasts.

A gate at 1 changes nothing, at 0 it silences its unit; the gradient at 1 says what silencing would do. Gates
sit before the output projections, as hooks: a model outside of the context computes as if there were none.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from compress.removal import Kept
from compress.units import Unit, output_projection, unit_counts, unit_width
from encoder.model import Classifier
from encoder.packing import Packing
from encoder.residual import Residual, Stream


@contextmanager
def gated(
    model: Classifier, unit: Unit, gates: Sequence[Tensor], packing: Packing | None = None
) -> Iterator[None]:
    """Multiply each layer's units by its ``gates``: [units], or [B, units] for the rows of ``packing``."""
    hooks = []
    try:
        layers = list(model.encoder.layers)
        for layer, shape, gate in zip(layers, model.config.layers, gates, strict=True):
            hook = _gate(gate, unit_width(shape, unit), packing, last=layer is layers[-1])
            hooks.append(output_projection(layer, unit).register_forward_pre_hook(hook))
        yield
    finally:
        for handle in hooks:
            handle.remove()


def _gate(gate: Tensor, width: int, packing: Packing | None, *, last: bool) -> Any:
    def multiply(module: object, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        x = arguments[0]  # [N, units·width], in a last layer [B, units·width]
        factors = gate
        if packing is not None and not (last and len(x) == packing.num_rows):
            factors = gate.index_select(0, packing.rows)  # [N, units]
        return ((x.unflatten(1, (-1, width)) * factors[..., None]).flatten(1), *arguments[1:])

    return multiply if gate.shape[-1] else lambda module, arguments: None


@contextmanager
def silenced(model: Classifier, unit: Unit, kept: Kept) -> Iterator[None]:
    """All units but those at the places ``kept`` of each layer contribute nothing."""
    gates = []
    for count, places in zip(unit_counts(model.config, unit), kept, strict=True):
        gate = torch.zeros(count, device=next(model.parameters()).device)
        gate[list(places)] = 1.0
        gates.append(gate)
    with gated(model, unit, gates):
        yield


@contextmanager
def passed_over(model: Classifier, kept: Sequence[int]) -> Iterator[None]:
    """All layers but ``kept`` are passed over: what goes into one comes out of it."""
    whole = model.encoder.layers
    try:
        model.encoder.layers = torch.nn.ModuleList(whole[layer] for layer in sorted(kept))
        yield
    finally:
        model.encoder.layers = whole


@contextmanager
def without_source(model: Classifier, number: int) -> Iterator[None]:
    """No sublayer, nor the end, reads source ``number`` of a model with attention residuals.

    The weights of the others sum to 1 again. Who has no other source keeps it: the first sublayer, the
    embeddings.
    """
    readers = [module for module in model.modules() if isinstance(module, Residual)]

    def leave_out(module: object, arguments: tuple[Stream]) -> tuple[Stream]:
        sources = arguments[0].sources
        if len(sources) == 1 or number >= len(sources):
            return arguments
        return (Stream((*sources[:number], *sources[number + 1 :])),)

    hooks = [reader.register_forward_pre_hook(leave_out) for reader in readers]
    try:
        yield
    finally:
        for handle in hooks:
            handle.remove()
