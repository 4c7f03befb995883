"""What it takes to spell a family as Hugging Face does, and the words that families share."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from encoder.config import Activation, EncoderConfig, LayerShape
from encoder.errors import CheckpointError

ACTIVATIONS: dict[str, Activation] = {
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
}
ACTIVATION_NAMES = {"gelu": "gelu", "gelu_tanh": "gelu_pytorch_tanh", "relu": "relu", "silu": "silu"}


@dataclass(frozen=True)
class Spelling:
    """One family: ``architecture`` as in ``…ForSequenceClassification``, ``prefix`` of its encoder's names.

    ``bare``: how names of an encoder saved without the prefix begin. ``layers``: where layers are, after the
    prefix. ``activation_key``: where config.json names the activation. ``read`` and ``write`` are the config,
    ``names`` maps modules of ours to those of theirs (see ``huggingface.parameter_names``), ``problems`` are
    reasons to refuse a config.json, ``why_not`` is one why a shape with whole and equal layers is none of the
    family's.
    """

    architecture: str
    prefix: str
    bare: tuple[str, ...]
    layers: str
    activation_key: str
    read: Callable[[Mapping[str, Any]], EncoderConfig]
    write: Callable[[EncoderConfig], dict[str, Any]]
    names: Callable[[EncoderConfig], dict[str, tuple[str, ...]]]
    why_not: Callable[[EncoderConfig], str | None]
    problems: Callable[[Mapping[str, Any], str], list[str]] = lambda raw, where: []


def equal_layers(hidden_size: int, heads: int, intermediate_size: int, count: int) -> tuple[LayerShape, ...]:
    """Layers as config.json describes them, all alike.

    Raises:
        CheckpointError: the heads do not share the width evenly. TypeError: a number is none.
    """
    for name, value in (
        ("hidden size", hidden_size),
        ("number of heads", heads),
        ("number of layers", count),
    ):
        if not isinstance(value, int):
            raise TypeError(f"the {name} is {value!r}; expected a whole number")
    if heads < 1 or hidden_size % heads:
        raise CheckpointError(f"hidden_size {hidden_size} is not a multiple of num_attention_heads {heads}")
    shape = LayerShape(
        heads=tuple(range(heads)), head_size=hidden_size // heads, intermediate_size=intermediate_size
    )
    return (shape,) * count


def layer_names(count: int, where: str, modules: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Modules of ``count`` layers of ours → those of theirs below ``where``; ``modules`` are one layer's."""
    return {
        f"encoder.layers.{number}.{ours}": tuple(f"{where}{number}.{one}" for one in theirs)
        for number in range(count)
        for ours, theirs in modules.items()
    }


def first_of(config: EncoderConfig, reasons: Mapping[str, bool]) -> str | None:
    """The first reason that holds, said of ``config``'s family."""
    for reason, holds in reasons.items():
        if holds:
            return f"{reason}, which no {config.family} model does"
    return None
