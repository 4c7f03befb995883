"""Which tokens of a row exist, as a graph knows it, and one vector out of those of a row's tokens."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from compress.graph_builder import GraphBuilder
from encoder.vector_choice import Pooling


class Tokens(NamedTuple):
    """Names of what a graph knows of attention_mask [B, T].

    ``mask`` is bool [B, T]; ``exists`` int64 [B, T], 0 or 1; ``first`` int64 [B, 1], the index of a row's
    first token; ``any`` float [B, 1], 0 for a row without tokens.
    """

    mask: str
    exists: str
    first: str
    any: str


def read_mask(builder: GraphBuilder) -> Tokens:
    """From the input attention_mask [B, T] to what the rest needs."""
    from onnx import TensorProto

    mask = builder.add("Cast", "attention_mask", to=TensorProto.BOOL)
    exists = builder.add("Cast", mask, to=TensorProto.INT64)
    first = builder.add("ArgMax", exists, axis=1, keepdims=1)
    any_token = builder.add("GatherElements", exists, first, axis=1)
    return Tokens(mask, exists, first, builder.add("Cast", any_token, to=TensorProto.FLOAT))


def pool(
    builder: GraphBuilder,
    states: Sequence[str],
    pooling: Pooling,
    tokens: Tokens,
    *,
    output: str | None = None,
) -> str:
    """The mean of ``states``, float [B, T, D] each, pooled to ``output`` [B, D] as in ``encoder.pooling``.

    Zeros for a row without tokens.
    """
    x = states[0] if len(states) == 1 else builder.add("Mean", *states)  # [B, T, D]
    return builder.add("Mul", _pool(builder, x, pooling, tokens), tokens.any, output=output)


def _pool(builder: GraphBuilder, x: str, pooling: Pooling, tokens: Tokens) -> str:
    """x [B, T, D] → [B, D]; finite, and otherwise of no meaning, for a row without tokens."""
    from onnx import TensorProto

    if pooling == "cls":
        return builder.add("Squeeze", builder.take(x, tokens.first), builder.integers(1))
    if pooling == "max":
        there = builder.add("Unsqueeze", tokens.mask, builder.integers(2))  # [B, T, 1]
        lowest = builder.number(float(np.finfo(np.float32).min))
        return builder.add("ReduceMax", builder.add("Where", there, x, lowest), axes=[1], keepdims=0)
    each = builder.add("Cast", tokens.exists, to=TensorProto.FLOAT)  # [B, T]
    weighted = builder.add("Mul", x, builder.add("Unsqueeze", each, builder.integers(2)))
    total = builder.add("ReduceSum", weighted, builder.integers(1), keepdims=0)  # [B, D]
    count = builder.add("ReduceSum", each, builder.integers(1), keepdims=1)  # [B, 1]
    return builder.add("Div", total, builder.add("Max", count, builder.number(1.0)))
