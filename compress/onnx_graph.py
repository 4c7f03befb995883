"""A classifier as an ONNX graph, written node by node from its config and weights.

Standard operators of opset 17 only, so that any ONNX runtime can read it; nothing is traced, so batch and
sequence length stay free and a pruned layer needs no special care. What the graph says about masks is what
``Packing`` says: a token that is masked does not exist, wherever it stands, and the others move up.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from encoder.config import Activation, EncoderConfig, LayerShape
from encoder.errors import ExportError

if TYPE_CHECKING:
    from onnx import ModelProto

    from encoder.model import Classifier

OPSET = 17
IR_VERSION = 8  # the one that came with opset 17: newer ones shut older runtimes out
INPUTS = ("input_ids", "attention_mask", "token_type_ids")
OUTPUT = "logits"

# protobuf cannot hold 2 GB in one file; weights beyond this go into a file beside it.
MAX_BYTES_INSIDE = 1_800_000_000


def graph_inputs(config: EncoderConfig) -> tuple[str, ...]:
    """The inputs of the graph, each int64 [B, T]: token_type_ids only where the model has types."""
    return INPUTS if config.type_vocab_size else INPUTS[:2]


def write_onnx(model: "Classifier", path: Path) -> None:
    """Write the graph of ``model`` to ``path``; of a very large model the weights go to ``path``.data.

    Raises:
        ExportError: the file cannot be written.
    """
    import onnx

    graph = make_onnx(model)
    size = sum(parameter.numel() * 4 for parameter in model.parameters())
    try:
        if size > MAX_BYTES_INSIDE:
            onnx.save_model(graph, str(path), save_as_external_data=True, location=f"{path.name}.data")
        else:
            onnx.save_model(graph, str(path))
    except OSError as error:
        raise ExportError(f"{path}: the ONNX graph cannot be written: {error}") from error


def make_onnx(model: "Classifier") -> "ModelProto":
    """The graph of ``model`` in evaluation mode, weights as float32 inside.

    Inputs as ``graph_inputs`` says, ``attention_mask`` being non-zero where a token exists; output ``logits``
    float32 [B, C]. A row without tokens has finite logits, the same as in torch.
    """
    from onnx import TensorProto, helper

    config = model.config
    builder = _Builder(
        {name: value.detach().cpu().float().numpy() for name, value in model.named_parameters()}
    )
    exists, first, any_token, key_bias = _read_mask(builder)
    x = _embed(builder, config, exists)
    for index, shape in enumerate(config.layers):
        asks = first if index == config.num_hidden_layers - 1 else None  # of the last layer one token is used
        x = _layer(builder, config, shape, f"encoder.layers.{index}", x, key_bias, asks)
    if config.norm == "pre":
        x = builder.layer_norm("encoder.final_norm", x, config.layer_norm_eps)
    pooled = builder.add("Mul", builder.add("Squeeze", x, builder.integers(1)), any_token)  # [B, D]
    pooled = builder.linear("classifier.dense", pooled)
    pooled = _CLASSIFIER_ACTIVATIONS[config.classifier.activation](builder, pooled)
    builder.linear("classifier.output", pooled, output=OUTPUT)
    graph = helper.make_graph(
        builder.nodes,
        "classifier",
        [
            helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "sequence"])
            for name in graph_inputs(config)
        ],
        [helper.make_tensor_value_info(OUTPUT, TensorProto.FLOAT, ["batch", model.task.num_outputs])],
        initializer=builder.initializers,
    )
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION, producer_name="enc"
    )


class _Builder:
    """Nodes and initializers as they are added; ``weights`` are the parameters of the model by name."""

    def __init__(self, weights: dict[str, NDArray[np.float32]]) -> None:
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []
        self._weights = weights
        self._constants: dict[tuple[str, bytes, tuple[int, ...]], str] = {}

    def add(self, operator: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        """A node with one output; returns the output's name."""
        from onnx import helper

        name = f"{operator}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [output or name], name=name, **attributes))
        return output or name

    def constant(self, array: NDArray[Any], name: str | None = None) -> str:
        """An initializer; equal unnamed ones are stored once."""
        from onnx import numpy_helper

        key = (array.dtype.str, array.tobytes(), array.shape) if name is None else (name, b"", ())
        if key not in self._constants:
            self._constants[key] = name or f"constant_{len(self._constants)}"
            array = np.ascontiguousarray(array)
            self.initializers.append(numpy_helper.from_array(array, self._constants[key]))
        return self._constants[key]

    def integers(self, *values: int) -> str:
        """int64 [len(values)]."""
        return self.constant(np.array(values, dtype=np.int64))

    def number(self, value: float) -> str:
        """A float32 scalar."""
        return self.constant(np.array(value, dtype=np.float32))

    def parameter(self, name: str) -> str:
        """A parameter of the model, as it is."""
        return self.constant(self._weights[name], name)

    def linear(self, module: str, x: str, *, output: str | None = None) -> str:
        """x [..., in] → [..., out]. A linear layer of width 0 gives its bias, to be broadcast."""
        weight = self._weights[f"{module}.weight"]  # [out, in]
        bias = self.parameter(f"{module}.bias")
        if weight.shape[1] == 0:
            return bias
        return self.add(
            "Add", self.add("MatMul", x, self.constant(weight.T, f"{module}.weight")), bias, output=output
        )

    def separate(self, module: str, parts: Sequence[str]) -> Sequence[str]:
        """Cut the linear layer ``module`` by its outputs into equal layers with the names ``parts``."""
        for kind in ("weight", "bias"):
            arrays = np.split(self._weights[f"{module}.{kind}"], len(parts))
            self._weights |= {f"{part}.{kind}": array for part, array in zip(parts, arrays, strict=True)}
        return parts

    def take(self, x: str, index: str) -> str:
        """Of x [B, T, D] the token ``index`` int64 [B, 1] of each row: [B, 1, D]."""
        return self.add("Unsqueeze", self.add("GatherND", x, index, batch_dims=1), self.integers(1))

    def residual(self, x: str, update: str) -> str:
        """x + update, before a norm.

        As Sum, because ONNX Runtime fuses Add and LayerNormalization into one operator that takes five times
        as long on a CPU as the two do: the model as a whole would be slower by 8 % in float32 and 20 % in
        int8.
        """
        return self.add("Sum", x, update)

    def layer_norm(self, module: str, x: str, epsilon: float) -> str:
        """LayerNorm over the last axis."""
        scale, bias = self.parameter(f"{module}.weight"), self.parameter(f"{module}.bias")
        return self.add("LayerNormalization", x, scale, bias, axis=-1, epsilon=epsilon)


def _read_mask(builder: _Builder) -> tuple[str, str, str, str]:
    """From attention_mask [B, T] to what the rest needs.

    ``exists`` int64 [B, T], 0 or 1; ``first`` int64 [B, 1], the index of a row's first token; ``any_token``
    float [B, 1], 0 for a row without tokens; ``key_bias`` float [B, 1, 1, T], added to the scores: the lowest
    number, and not −∞, where there is no token, so that a softmax over none stays finite.
    """
    from onnx import TensorProto

    mask = builder.add("Cast", "attention_mask", to=TensorProto.BOOL)
    exists = builder.add("Cast", mask, to=TensorProto.INT64)
    first = builder.add("ArgMax", exists, axis=1, keepdims=1)
    as_float = builder.add("Cast", mask, to=TensorProto.FLOAT)
    any_token = builder.add("ReduceMax", as_float, axes=[1], keepdims=1)
    lowest = builder.number(float(np.finfo(np.float32).min))
    bias = builder.add("Where", mask, builder.number(0.0), lowest)
    return exists, first, any_token, builder.add("Unsqueeze", bias, builder.integers(1, 2))


def _embed(builder: _Builder, config: EncoderConfig, exists: str) -> str:
    """Word + position (+ type) embeddings, normalised, projected where narrower: [B, T, D]."""
    x = builder.add("Gather", builder.parameter("encoder.embeddings.word.weight"), "input_ids")
    count = builder.add("CumSum", exists, builder.constant(np.array(1, dtype=np.int64)))
    # The n-th token has position n − 1; what is masked before the first gets position 0, and no one looks.
    position = builder.add("Max", builder.add("Sub", count, builder.integers(1)), builder.integers(0))
    if config.position_offset:
        position = builder.add("Add", position, builder.integers(config.position_offset))
    table = builder.parameter("encoder.embeddings.position.weight")
    x = builder.residual(x, builder.add("Gather", table, position))
    if config.type_vocab_size:
        types = builder.parameter("encoder.embeddings.token_type.weight")
        x = builder.residual(x, builder.add("Gather", types, "token_type_ids"))
    x = builder.layer_norm("encoder.embeddings.norm", x, config.layer_norm_eps)
    if config.embedding_size != config.hidden_size:
        x = builder.linear("encoder.embeddings.projection", x)
    return x


def _layer(
    builder: _Builder,
    config: EncoderConfig,
    shape: LayerShape,
    name: str,
    x: str,
    key_bias: str,
    asks: str | None,
) -> str:
    """Attention and feed-forward with their residuals and norms: [B, T, D] → [B, T, D].

    With ``asks`` int64 [B, 1], the index of one token a row, the result is that token's, [B, 1, D].
    """
    eps, pre_norm = config.layer_norm_eps, config.norm == "pre"
    normed = builder.layer_norm(f"{name}.attention_norm", x, eps) if pre_norm else x
    asking = normed
    if asks is not None:
        x, asking = builder.take(x, asks), builder.take(normed, asks)
    x = builder.residual(x, _attention(builder, shape, f"{name}.attention", asking, normed, key_bias))
    if not pre_norm:
        x = builder.layer_norm(f"{name}.attention_norm", x, eps)
    normed = builder.layer_norm(f"{name}.feed_forward_norm", x, eps) if pre_norm else x
    update = _feed_forward(
        builder, config.activation, shape.intermediate_size, f"{name}.feed_forward", normed
    )
    x = builder.residual(x, update)
    return x if pre_norm else builder.layer_norm(f"{name}.feed_forward_norm", x, eps)


def _attention(builder: _Builder, shape: LayerShape, name: str, asking: str, x: str, key_bias: str) -> str:
    """What ``asking`` [B, Q, D] finds in ``x`` [B, T, D]: [B, Q, D], or [D] where no head is left."""
    H, K = shape.num_attention_heads, shape.head_size
    if H == 0:
        return builder.linear(f"{name}.output", x)
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
    scores = builder.add("MatMul", builder.add("Mul", query, builder.number(K**-0.5)), key)  # [B, H, Q, T]
    weights = builder.add("Softmax", builder.add("Add", scores, key_bias), axis=-1)
    mixed = builder.add("Transpose", builder.add("MatMul", weights, value), perm=[0, 2, 1, 3])  # [B, Q, H, K]
    return builder.linear(f"{name}.output", builder.add("Reshape", mixed, builder.integers(0, 0, H * K)))


def _feed_forward(builder: _Builder, activation: Activation, neurons: int, name: str, x: str) -> str:
    """[B, T, D] → [B, T, D], or [D] where no neuron is left."""
    if neurons == 0:
        return builder.linear(f"{name}.output", x)
    inner = builder.linear(f"{name}.intermediate", x)
    return builder.linear(f"{name}.output", _ACTIVATIONS[activation](builder, inner))


def _gelu(builder: _Builder, x: str) -> str:
    """x/2 · (1 + erf(x/√2)). Gelu is an operator only from opset 20 on."""
    erf = builder.add("Erf", builder.add("Div", x, builder.number(2**0.5)))
    return builder.add(
        "Mul", builder.add("Mul", x, builder.add("Add", erf, builder.number(1))), builder.number(0.5)
    )


def _gelu_tanh(builder: _Builder, x: str) -> str:
    """x/2 · (1 + tanh(√(2/π)·(x + 0.044715·x³)))."""
    cube = builder.add("Mul", x, builder.add("Mul", x, x))
    inner = builder.add("Add", x, builder.add("Mul", cube, builder.number(0.044715)))
    tanh = builder.add("Tanh", builder.add("Mul", inner, builder.number((2 / np.pi) ** 0.5)))
    half = builder.add("Mul", x, builder.number(0.5))
    return builder.add("Mul", half, builder.add("Add", tanh, builder.number(1)))


def _silu(builder: _Builder, x: str) -> str:
    return builder.add("Mul", x, builder.add("Sigmoid", x))


def _relu(builder: _Builder, x: str) -> str:
    return builder.add("Relu", x)


def _tanh(builder: _Builder, x: str) -> str:
    return builder.add("Tanh", x)


_ACTIVATIONS = {"gelu": _gelu, "gelu_tanh": _gelu_tanh, "relu": _relu, "silu": _silu}
_CLASSIFIER_ACTIVATIONS = {"tanh": _tanh, "relu": _relu, "gelu": _gelu}
