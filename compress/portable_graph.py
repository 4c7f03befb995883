"""The parts of a classifier in standard ONNX operators, which any runtime has."""

import numpy as np

from compress.graph_builder import GraphBuilder
from encoder.config import EncoderConfig, LayerShape


class PortableParts:
    """What ``onnx_graph`` puts together, in operators of opset 17 whose meaning later opsets have kept."""

    def __init__(self, builder: GraphBuilder, config: EncoderConfig) -> None:
        self._builder, self._config = builder, config

    def keys(self, mask: str) -> str:
        """From ``mask`` bool [B, T] what is added to the scores, float [B, 1, 1, T].

        The lowest number, and not −∞, where there is no token, so that a softmax over none stays finite.
        """
        builder = self._builder
        lowest = builder.number(float(np.finfo(np.float32).min))
        bias = builder.add("Where", mask, builder.number(0.0), lowest)
        return builder.add("Unsqueeze", bias, builder.integers(1, 2))

    def embed(self, position: str) -> str:
        """Word + position (+ type) embeddings, normalised: [B, T, embedding_size]."""
        builder = self._builder
        x = builder.add("Gather", builder.parameter("encoder.embeddings.word.weight"), "input_ids")
        table = builder.parameter("encoder.embeddings.position.weight")
        x = builder.sum(x, builder.add("Gather", table, position))
        if self._config.type_vocab_size > 1:
            types = builder.parameter("encoder.embeddings.token_type.weight")
            x = builder.sum(x, builder.add("Gather", types, "token_type_ids"))
        return builder.layer_norm("encoder.embeddings.norm", x, self._config.layer_norm_eps)

    def join(self, x: str, product: str | None, module: str, norm: str) -> tuple[str, str]:
        """x + product + the bias of the linear layer ``module``, and the same after the LayerNorm ``norm``.

        Post-norm no one needs the first, so both are the second.
        """
        builder = self._builder
        bias = builder.parameter(f"{module}.bias")
        x = builder.sum(x, bias if product is None else builder.add("Add", product, bias))
        normed = builder.layer_norm(norm, x, self._config.layer_norm_eps)
        return (normed if self._config.norm == "post" else x), normed

    def attention(self, shape: LayerShape, name: str, asking: str, x: str, keys: str) -> str:
        """What ``asking`` [B, Q, D] finds in ``x`` [B, T, D], before the output projection: [B, Q, H·K]."""
        builder = self._builder
        H, K = shape.num_attention_heads, shape.head_size
        by_head = builder.integers(0, 0, H, K)
        # Three products, though the model has one: cutting the result of one means to copy all of it.
        parts = builder.separate(f"{name}.qkv", [f"{name}.query", f"{name}.key", f"{name}.value"])
        query, key, value = (
            builder.add("Reshape", builder.linear(part, source), by_head)
            for part, source in zip(parts, (asking, x, x), strict=True)
        )  # [B, Q, H, K] and twice [B, T, H, K]
        query = builder.add("Transpose", query, perm=[0, 2, 1, 3])  # [B, H, Q, K]
        key = builder.add("Transpose", key, perm=[0, 2, 3, 1])  # [B, H, K, T]
        value = builder.add("Transpose", value, perm=[0, 2, 1, 3])  # [B, H, T, K]
        scores = builder.add("MatMul", builder.add("Mul", query, builder.number(K**-0.5)), key)
        weights = builder.add("Softmax", builder.add("Add", scores, keys), axis=-1)  # [B, H, Q, T]
        mixed = builder.add("Transpose", builder.add("MatMul", weights, value), perm=[0, 2, 1, 3])
        return builder.add("Reshape", mixed, builder.integers(0, 0, H * K))

    def activate(self, product: str, bias: str) -> str:
        """The activation of product [..., F] + bias [F]."""
        return ACTIVATIONS[self._config.activation](self._builder, self._builder.add("Add", product, bias))


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


CLASSIFIER_ACTIVATIONS = {"tanh": _tanh, "relu": relu, "gelu": _gelu}
ACTIVATIONS = {"gelu": _gelu, "gelu_tanh": _gelu_tanh, "relu": relu, "silu": silu}
