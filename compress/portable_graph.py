"""The parts of a classifier in standard ONNX operators, which any runtime has."""

import numpy as np

from compress.graph_builder import GraphBuilder
from encoder.config import EncoderConfig, LayerShape

Turns = tuple[str, str]  # the names of cosines and sines


class PortableParts:
    """What ``onnx_graph`` puts together, in operators of opset 17 whose meaning later opsets have kept."""

    def __init__(self, builder: GraphBuilder, config: EncoderConfig) -> None:
        self._builder, self._config = builder, config

    def keys(self, mask: str, near: str | None = None) -> str:
        """From ``mask`` bool [B, T] what is added to the scores, float [B, 1, 1, T] or [B, 1, T, T].

        The lowest number, and not −∞, where there is no token, so that a softmax over none stays finite.
        ``near`` bool [B, Q, T]: which tokens are within the window of each that asks.
        """
        builder = self._builder
        lowest = builder.number(float(np.finfo(np.float32).min))
        if near is None:
            bias = builder.add("Where", mask, builder.number(0.0), lowest)
            return builder.add("Unsqueeze", bias, builder.integers(1, 2))
        seen = builder.add("And", builder.add("Unsqueeze", mask, builder.integers(1)), near)  # [B, Q, T]
        bias = builder.add("Where", seen, builder.number(0.0), lowest)
        return builder.add("Unsqueeze", bias, builder.integers(1))

    def embed(self, position: str) -> str:
        """Word (+ position) (+ type) embeddings, normalised: [B, T, embedding_size]."""
        builder = self._builder
        x = builder.add("Gather", builder.parameter("encoder.embeddings.word.weight"), "input_ids")
        if self._config.position_embedding != "rotary":
            table = builder.parameter("encoder.embeddings.position.weight")
            x = builder.sum(x, builder.add("Gather", table, position))
        if self._config.type_vocab_size > 1:
            types = builder.parameter("encoder.embeddings.token_type.weight")
            x = builder.sum(x, builder.add("Gather", types, "token_type_ids"))
        return builder.layer_norm("encoder.embeddings.norm", x, self._config.layer_norm_eps)

    def turns(self, position: str, head_size: int, theta: float) -> Turns:
        """Cosines and sines for tokens at ``position`` int64 [B, T], each [B, T, 1, K/2].

        Looked up in tables, because in float16 the product of a position and an angle would be rounded to
        whole turns.
        """
        builder = self._builder
        steps = np.arange(0, head_size, 2, dtype=np.float32) / np.float32(head_size)
        places = np.arange(self._config.max_tokens, dtype=np.float32)[:, None]
        angles = places * (np.float32(1.0) / np.float32(theta) ** steps)
        cos, sin = (
            builder.add(
                "Unsqueeze",
                builder.add("Gather", builder.constant(table(angles), f"{name}_{theta:g}"), position),
                builder.integers(2),
            )
            for name, table in ((f"rotary.cos_{head_size}", np.cos), (f"rotary.sin_{head_size}", np.sin))
        )
        return cos, sin

    def attention(
        self, shape: LayerShape, name: str, asking: str, x: str, keys: str, turns: Turns | None = None
    ) -> str:
        """What ``asking`` [B, Q, D] finds in ``x`` [B, T, D], before the output projection: [B, Q, H·K].

        ``turns`` are those of the tokens of ``x``; a single one that asks is the first, which turns by
        nothing.
        """
        builder = self._builder
        H, K = shape.num_attention_heads, shape.head_size
        by_head = builder.integers(0, 0, H, K)
        # Three products, though the model has one: cutting the result of one means to copy all of it.
        parts = builder.separate(f"{name}.qkv", [f"{name}.query", f"{name}.key", f"{name}.value"])
        query, key, value = (
            builder.add("Reshape", builder.linear(part, source), by_head)
            for part, source in zip(parts, (asking, x, x), strict=True)
        )  # [B, Q, H, K] and twice [B, T, H, K]
        if turns is not None:
            query = self._turn(query, turns, K // 2) if asking == x else query
            key = self._turn(key, turns, K // 2)
        query = builder.add("Transpose", query, perm=[0, 2, 1, 3])  # [B, H, Q, K]
        key = builder.add("Transpose", key, perm=[0, 2, 3, 1])  # [B, H, K, T]
        value = builder.add("Transpose", value, perm=[0, 2, 1, 3])  # [B, H, T, K]
        scores = builder.add("MatMul", builder.add("Mul", query, builder.number(K**-0.5)), key)
        weights = builder.add("Softmax", builder.add("Add", scores, keys), axis=-1)  # [B, H, Q, T]
        mixed = builder.add("Transpose", builder.add("MatMul", weights, value), perm=[0, 2, 1, 3])
        return builder.add("Reshape", mixed, builder.integers(0, 0, H * K))

    def _turn(self, x: str, turns: Turns, half: int) -> str:
        """x [B, T, H, K], turned by its positions (``encoder.rotary``); ``half`` is K/2."""
        builder, (cos, sin) = self._builder, turns
        outputs = [f"{x}_low", f"{x}_high"]  # [B, T, H, K/2] each
        low, high = builder.add_many("Split", [x, builder.integers(half, half)], outputs, axis=-1)
        turned = (
            builder.add("Sub", builder.add("Mul", low, cos), builder.add("Mul", high, sin)),
            builder.add("Add", builder.add("Mul", high, cos), builder.add("Mul", low, sin)),
        )
        return builder.add("Concat", *turned, axis=-1)

    def activate(self, product: str, bias: str | None) -> str:
        """The activation of product [..., F] + bias [F]."""
        inner = product if bias is None else self._builder.add("Add", product, bias)
        return ACTIVATIONS[self._config.activation](self._builder, inner)


def _gelu(builder: GraphBuilder, x: str) -> str:
    """x/2 · (1 + erf(x/√2)). Gelu is an operator only from opset 20 on."""
    erf = builder.add("Erf", builder.add("Div", x, builder.number(2**0.5)))
    return builder.add(
        "Mul", builder.add("Mul", x, builder.add("Add", erf, builder.number(1))), builder.number(0.5)
    )


def _gelu_tanh(builder: GraphBuilder, x: str) -> str:
    """x/2 · (1 + tanh(√(2/π)·(x + 0.044715·x³)))."""
    cube = builder.add("Mul", x, builder.add("Mul", x, x))
    inner = builder.add("Add", x, builder.add("Mul", cube, builder.number(0.044715)))
    tanh = builder.add("Tanh", builder.add("Mul", inner, builder.number((2 / np.pi) ** 0.5)))
    half = builder.add("Mul", x, builder.number(0.5))
    return builder.add("Mul", half, builder.add("Add", tanh, builder.number(1)))


def silu(builder: GraphBuilder, x: str) -> str:
    """x · sigmoid(x)."""
    return builder.add("Mul", x, builder.add("Sigmoid", x))


def relu(builder: GraphBuilder, x: str) -> str:
    """max(x, 0)."""
    return builder.add("Relu", x)


def _tanh(builder: GraphBuilder, x: str) -> str:
    return builder.add("Tanh", x)


CLASSIFIER_ACTIVATIONS = {"tanh": _tanh, "relu": relu, "gelu": _gelu, "silu": silu}
ACTIVATIONS = {"gelu": _gelu, "gelu_tanh": _gelu_tanh, "relu": relu, "silu": silu}
