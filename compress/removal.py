"""Heads, neurons and layers taken out for good: a smaller classifier that is an ordinary one.

The rows of query, key and value (or of the intermediate layer) and the columns of the output projection go,
and the config says so; the output bias stays, and is all that remains of a sublayer without units.
"""

from collections.abc import Collection, Mapping, Sequence

import torch
from torch import Tensor

from compress.units import Unit, unit_counts, why_layers_stay
from encoder.config import EncoderConfig, LayerShape
from encoder.errors import CompressionError
from encoder.model import Classifier
from encoder.wording import counted

# The units, or layers, that stay, of each layer.
Kept = Sequence[Sequence[int]]


def keep_units(model: Classifier, unit: Unit, kept: Kept) -> Classifier:
    """A new classifier with the units at the places ``kept`` of each layer, counted among those it has now.

    Heads keep their original numbers in the config, and their size K. Equal to ``model`` with all other units
    silenced (Michel et al. 2019, equation 1 with ξ = 0).

    Raises:
        CompressionError: a place that is not there, or not one list a layer.
    """
    _check_layers(model.config, kept)
    counts = unit_counts(model.config, unit)
    problems = [
        f"layer {number} has {count} {unit}; there is no number {max(places)}"
        for number, (count, places) in enumerate(zip(counts, kept, strict=True))
        if places and max(places) >= count
    ]
    if problems:
        raise CompressionError.from_problems(problems)
    shapes, state = [], dict(model.state_dict())
    for number, (shape, places) in enumerate(zip(model.config.layers, kept, strict=True)):
        index = torch.tensor(sorted(set(places)), dtype=torch.int64, device=next(model.parameters()).device)
        cut = _cut_heads if unit == "heads" else _cut_neurons
        shapes.append(cut(state, f"encoder.layers.{number}", shape, index, model.config))
    return _build(model, tuple(shapes), state)


def keep_layers(model: Classifier, kept: Sequence[int]) -> Classifier:
    """A new classifier with the layers ``kept``, in their order; the others are passed over.

    Raises:
        CompressionError: a layer that is not there, or none left; or its layers cannot be told apart.
    """
    layers = sorted(set(kept))
    count = model.config.num_hidden_layers
    if layers != list(range(count)) and (why := why_layers_stay(model.config)):
        raise CompressionError(f"no layer can be removed from this model: {why}")
    if not layers:
        raise CompressionError(f"no layer would be left of {count}; keep at least one")
    if layers[0] < 0 or layers[-1] >= count:
        wrong = [layer for layer in layers if not 0 <= layer < count]
        raise CompressionError(f"no layer {_listed(wrong)}: the model has {count}, counted from 0")
    prefix, state = "encoder.layers.", {}
    places = {str(old): str(new) for new, old in enumerate(layers)}
    for name, tensor in model.state_dict().items():
        if not name.startswith(prefix):
            state[name] = tensor
            continue
        number, _, rest = name.removeprefix(prefix).partition(".")
        if number in places:
            state[f"{prefix}{places[number]}.{rest}"] = tensor
    return _build(model, tuple(model.config.layers[layer] for layer in layers), state)


def _cut_heads(
    state: dict[str, Tensor], layer: str, shape: LayerShape, index: Tensor, config: EncoderConfig
) -> LayerShape:
    """Cut ``layer`` in ``state`` down to the heads at ``index`` [H']; returns the new shape."""
    H, K = shape.num_attention_heads, shape.head_size
    for name in _present(state, f"{layer}.attention.qkv"):
        rows = state[name].unflatten(0, (3, H, K)) if H else state[name].view(3, 0, K, *state[name].shape[1:])
        state[name] = rows.index_select(1, index).flatten(0, 2)  # [3·H'·K, …]
    name = f"{layer}.attention.output.weight"
    D = len(state[name])
    state[name] = state[name].view(D, H, K).index_select(1, index).flatten(1)  # [D, H'·K]
    heads = tuple(shape.heads[place] for place in index.tolist())
    return shape.model_copy(update={"heads": heads})


def _cut_neurons(
    state: dict[str, Tensor], layer: str, shape: LayerShape, index: Tensor, config: EncoderConfig
) -> LayerShape:
    """Cut ``layer`` in ``state`` down to the neurons at ``index`` [F']; returns the new shape."""
    F = shape.intermediate_size
    rows = torch.cat([index, index + F]) if config.gated else index  # a gated neuron is two rows
    for name in _present(state, f"{layer}.feed_forward.intermediate"):
        state[name] = state[name].index_select(0, rows)  # [F', …], gated [2·F', …]
    name = f"{layer}.feed_forward.output.weight"
    state[name] = state[name].index_select(1, index)  # [D, F']
    return shape.model_copy(update={"intermediate_size": len(index)})


def _present(state: Mapping[str, Tensor], module: str) -> list[str]:
    """The names of a linear layer's parameters."""
    return [name for name in (f"{module}.weight", f"{module}.bias") if name in state]


def _build(model: Classifier, shapes: tuple[LayerShape, ...], state: Mapping[str, Tensor]) -> Classifier:
    """A classifier of ``model``'s kind with these layers and a copy of these parameters."""
    config = model.config.model_copy(update={"layers": shapes})
    made = model.in_shape(config).to(next(model.parameters()).device)
    made.load_state_dict({name: state[name] for name in made.state_dict()})
    return made.train(model.training)


def _check_layers(config: EncoderConfig, kept: Kept) -> None:
    if len(kept) != config.num_hidden_layers:
        raise CompressionError(
            f"{counted(len(kept), 'layer')} named; the model has {config.num_hidden_layers}"
        )


def _listed(numbers: Collection[int]) -> str:
    return ", ".join(map(str, numbers)) or "none"
