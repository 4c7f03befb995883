"""What becomes of texts, as the user writes it: of which layers, pooled how, in which format; no torch."""

import re
from dataclasses import dataclass
from typing import Literal

from encoder.errors import ConfigError

Pooling = Literal["mean", "cls", "max"]
POOLINGS: tuple[Pooling, ...] = ("mean", "cls", "max")
FORMATS = (".npy", ".parquet")
_LAYERS = re.compile(r"(-?\d+)|(-?\d+)?:(-?\d+)?")


@dataclass(frozen=True)
class Choice:
    """The mean of the hidden states ``states`` (of L+1, the embeddings being 0), pooled by ``pooling``.

    ``layers`` is how it was written.
    """

    layers: str
    states: range
    pooling: Pooling


def choose(layers: str, pooling: Pooling, num_layers: int) -> Choice:
    """The choice that ``layers`` stands for in an encoder of so many layers.

    A number is one layer, 0 the embeddings and −1 the last; ``a:b`` is the mean of several, as Python slices
    the list of the L+1 states.

    Raises:
        ConfigError: it is none of that, or the encoder has no such layer.
    """
    if problem := layers_problem(layers):
        raise ConfigError(f"--layers {problem}")
    states = range(num_layers + 1)
    if ":" in layers:
        start, stop = (int(end) if end else None for end in layers.split(":"))
        chosen = states[start:stop]
    else:
        at = int(layers)
        chosen = states[at:][:1] if at >= 0 or -at <= len(states) else range(0)
    if not chosen:
        raise ConfigError(
            f"--layers {layers}: no such layer; the model has layers 1 to {num_layers}, 0 are the embeddings "
            "and -1 is the last layer"
        )
    return Choice(layers, chosen, pooling)


def layers_problem(layers: str) -> str:
    """What is wrong with ``layers`` in any encoder; empty where nothing is."""
    if _LAYERS.fullmatch(layers):
        return ""
    return f"is {layers!r}; expected a layer such as -1 (the last) or 6, or several such as -4: or 1:4"
