"""The parts of a classifier in ONNX Runtime's own operators, each layer with its own heads and head size.

Nothing is matched against patterns: the operators are written from the config, so what is fused is known
beforehand (``expected_counts``) and can be compared with what a graph holds (``fused_counts``).
"""

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from compress.graph_builder import CONTRIB, GraphBuilder
from compress.portable_graph import Turns, relu, silu
from encoder.config import EncoderConfig, LayerShape

if TYPE_CHECKING:
    from onnx import ModelProto

GELUS = {"gelu": "BiasGelu", "gelu_tanh": "FastGelu"}  # activation → the operator that adds the bias too
PLAIN_ACTIVATIONS = {"relu": relu, "silu": silu}


def why_not_fused(config: EncoderConfig) -> str | None:
    """Why a classifier of this shape has no fused graph; ``None`` if it has.

    ONNX Runtime's operators add biases and a position table, look at all tokens, and know no gate.
    """
    reasons = {
        "rotary positions": config.position_embedding == "rotary",
        "local attention": any(layer.window is not None for layer in config.layers),
        "linear layers or norms without a bias": not (
            config.attention_bias and config.feed_forward_bias and config.norm_bias
        ),
        "gated feed-forward blocks": config.gated,
        "attention residuals": config.residual != "add",
    }
    found = [reason for reason, holds in reasons.items() if holds]
    return f"ONNX Runtime's own operators do not know {found[0]}" if found else None


def expected_counts(config: EncoderConfig) -> dict[str, int]:
    """How often each fused operator has to occur in the fused graph of a classifier of this shape."""
    with_heads = sum(shape.num_attention_heads > 0 for shape in config.layers)
    with_neurons = sum(shape.intermediate_size > 0 for shape in config.layers)
    asked_once = int(config.layers[-1].num_attention_heads > 0)  # by one token a row, in the last layer
    counts = Counter(
        EmbedLayerNormalization=1, Attention=with_heads - asked_once, MultiHeadAttention=asked_once
    )
    if config.activation in GELUS:
        counts[GELUS[config.activation]] = with_neurons
    return {operator: count for operator, count in sorted(counts.items()) if count}


def fused_counts(graph: "ModelProto") -> dict[str, int]:
    """How often each of ONNX Runtime's own operators occurs in ``graph``."""
    return dict(sorted(Counter(node.op_type for node in graph.graph.node if node.domain == CONTRIB).items()))


class FusedParts:
    """What ``onnx_graph`` puts together, in few operators.

    Not SkipLayerNormalization, which takes longer on a CPU than the Sum and LayerNormalization it stands for
    (docs/decisions/0008).
    """

    def __init__(self, builder: GraphBuilder, config: EncoderConfig) -> None:
        self._builder, self._config = builder, config

    def keys(self, mask: str, near: str | None = None) -> str:
        """From ``mask`` bool [B, T] which tokens exist, int32 [B, T].

        The raw mask and not the lengths of the rows, which would put all padding on the right.
        """
        from onnx import TensorProto

        return self._builder.add("Cast", mask, to=TensorProto.INT32)

    def embed(self, position: str) -> str:
        """Word + position (+ type) embeddings, normalised: [B, T, embedding_size]."""
        from onnx import TensorProto

        builder, prefix = self._builder, "encoder.embeddings"

        def as_int32(index: str) -> str:
            return builder.add("Cast", index, to=TensorProto.INT32)

        has_types = self._config.type_vocab_size > 1
        inputs = [
            as_int32("input_ids"),
            as_int32("token_type_ids") if has_types else "",
            builder.parameter(f"{prefix}.word.weight"),
            builder.parameter(f"{prefix}.position.weight"),
            builder.parameter(f"{prefix}.token_type.weight") if has_types else "",
            builder.parameter(f"{prefix}.norm.weight"),
            builder.parameter(f"{prefix}.norm.bias"),
            "",
            as_int32(position),
        ]
        outputs = ["embedded", "mask_index"]  # the second has to be there, though no one reads it
        eps = self._config.layer_norm_eps
        return builder.add_many("EmbedLayerNormalization", inputs, outputs, domain=CONTRIB, epsilon=eps)[0]

    def turns(self, position: str, head_size: int, theta: float) -> Turns:
        """Not here: see ``why_not_fused``."""
        raise NotImplementedError

    def attention(
        self, shape: LayerShape, name: str, asking: str, x: str, keys: str, turns: Turns | None = None
    ) -> str:
        """What ``asking`` [B, Q, D] finds in ``x`` [B, T, D], before the output projection: [B, Q, H·K].

        Attention where all tokens ask, as it has the three projections inside; MultiHeadAttention otherwise.
        """
        builder = self._builder
        bias = builder.parameter(f"{name}.qkv.bias")  # [3·H·K], in the order of both operators
        attributes = {
            "num_heads": shape.num_attention_heads,
            "scale": shape.head_size**-0.5,
            # The lowest number and not the default −10000, so that large scores cannot outweigh it.
            "mask_filter_value": float(np.finfo(np.float32).min),
        }
        if asking == x:
            weight = builder.matrix(f"{name}.qkv")
            widths = [shape.num_attention_heads * shape.head_size] * 3
            return builder.contrib("Attention", x, weight, bias, keys, qkv_hidden_sizes=widths, **attributes)
        parts = builder.separate(f"{name}.qkv", [f"{name}.query", f"{name}.key", f"{name}.value"])
        products = [builder.product(part, source) for part, source in zip(parts, (asking, x, x), strict=True)]
        return builder.contrib(
            "MultiHeadAttention",
            *(product for product in products if product is not None),
            bias,
            keys,
            **attributes,
        )

    def activate(self, product: str, bias: str | None) -> str:
        """The activation of product [..., F] + bias [F]."""
        activation = self._config.activation
        assert bias is not None
        if activation in GELUS:
            return self._builder.contrib(GELUS[activation], product, bias)
        return PLAIN_ACTIVATIONS[activation](self._builder, self._builder.add("Add", product, bias))
