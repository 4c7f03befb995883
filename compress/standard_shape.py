"""Heads and neurons that were removed, put back as zeros: the shape that other libraries can express.

A head without weights mixes nothing into the residual stream, and neither does a neuron, so the logits stay
what they are; so does the arithmetic of the unpruned shape, which is why only an export does this.
"""

import torch
from torch import Tensor

from encoder import huggingface
from encoder.config import EncoderConfig, LayerShape
from encoder.errors import ExportError
from encoder.model import Classifier


def why_not_standard(config: EncoderConfig) -> str | None:
    """Why this shape has no standard form, even with zeros for what was removed; ``None`` if it has."""
    if why := huggingface.why_not_in_family(_with_table(config)):
        return why
    size, *others = sorted({shape.head_size for shape in config.layers})
    if others or config.hidden_size % size:
        found = ", ".join(map(str, (size, *others)))
        return f"heads of size {found} do not divide its hidden size {config.hidden_size} evenly"
    highest = max((head for shape in config.layers for head in shape.heads), default=0)
    if highest >= config.hidden_size // size:
        return f"it has a head number {highest}, more than its hidden size {config.hidden_size} holds"
    return None


def standard_config(config: EncoderConfig) -> EncoderConfig:
    """The shape with all heads in each layer, and as many neurons as the widest layer has.

    Raises:
        ExportError: there is none.
    """
    if why := why_not_standard(config):
        raise ExportError(f"the model has no standard form: {why}; write it as ONNX (--format onnx)")
    sizes = {
        "heads": tuple(range(config.hidden_size // config.layers[0].head_size)),
        "intermediate_size": max(1, *(layer.intermediate_size for layer in config.layers)),
    }
    layers = tuple(layer.model_copy(update=sizes) for layer in config.layers)
    return _with_table(config).model_copy(update={"layers": layers})


def _with_table(config: EncoderConfig) -> EncoderConfig:
    """A sinusoidal table is saved with the other weights, and used like one that was learned."""
    if config.position_embedding != "sinusoidal":
        return config
    return config.model_copy(update={"position_embedding": "learned"})


def with_zeros(model: Classifier) -> Classifier:
    """A new classifier of the standard shape with the logits of ``model``.

    Raises:
        ExportError: there is no such shape.
    """
    config = standard_config(model.config)
    state = dict(model.state_dict())
    for number, (shape, full) in enumerate(zip(model.config.layers, config.layers, strict=True)):
        _spread_heads_(state, f"encoder.layers.{number}.attention", shape, full)
        _spread_neurons_(
            state, f"encoder.layers.{number}.feed_forward", full.intermediate_size, 2 if config.gated else 1
        )
    made = model.in_shape(config).to(next(model.parameters()).device)
    made.load_state_dict(state)
    return made.train(model.training)


def _spread_heads_(state: dict[str, Tensor], name: str, shape: LayerShape, full: LayerShape) -> None:
    """Each head to the place of its original number."""
    H, K = shape.num_attention_heads, shape.head_size
    weight = state[f"{name}.output.weight"]
    places = torch.tensor(shape.heads, dtype=torch.int64, device=weight.device)
    for kind in ("weight", "bias"):
        rows = state.get(f"{name}.qkv.{kind}")
        if rows is None:
            continue
        rows = rows.reshape(3, H, K, *rows.shape[1:])  # [3, H, K, …]
        spread = rows.new_zeros(3, full.num_attention_heads, *rows.shape[2:])
        state[f"{name}.qkv.{kind}"] = spread.index_copy(1, places, rows).flatten(0, 2)
    columns = weight.reshape(len(weight), H, K)  # [D, H, K]
    spread = weight.new_zeros(len(weight), full.num_attention_heads, K)
    state[f"{name}.output.weight"] = spread.index_copy(1, places, columns).flatten(1)


def _spread_neurons_(state: dict[str, Tensor], name: str, neurons: int, parts: int) -> None:
    """``neurons`` [F] in all, those that are there first, in each of the ``parts`` of a block."""
    weight = state[f"{name}.output.weight"]  # [D, F']
    missing = neurons - weight.shape[1]
    state[f"{name}.output.weight"] = torch.nn.functional.pad(weight, (0, missing))
    for kind in ("weight", "bias"):
        rows = state.get(f"{name}.intermediate.{kind}")
        if rows is None:
            continue
        spread = rows.new_zeros(parts, neurons, *rows.shape[1:])
        spread[:, : neurons - missing] = rows.unflatten(0, (parts, neurons - missing))
        state[f"{name}.intermediate.{kind}"] = spread.flatten(0, 1)
