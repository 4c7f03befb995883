"""A classifier as an ONNX graph, written node by node from its config and weights.

Nothing is traced, so batch and sequence length stay free and a pruned layer needs no special care. Two forms:
``portable`` has standard operators only, ``fused`` those of ONNX Runtime where they are faster. What a graph
says about masks is what ``Packing`` says: a token that is masked does not exist, wherever it stands, and the
others move up.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from compress.fused_graph import FusedParts
from compress.graph_builder import CONTRIB, GraphBuilder
from compress.graph_tokens import pool, read_mask
from compress.portable_graph import CLASSIFIER_ACTIVATIONS, PortableParts
from encoder.config import EncoderConfig
from encoder.errors import ExportError
from encoder.vector_choice import Choice

if TYPE_CHECKING:
    from onnx import ModelProto

    from encoder.model import Classifier

GraphForm = Literal["portable", "fused"]
OPSET = 17  # the first with LayerNormalization; older runtimes can read it
LAST_OPSET = 23  # what the operators used here are known to mean
INPUTS = ("input_ids", "attention_mask", "token_type_ids")
OUTPUT = "logits"
VECTORS = "vectors"

# protobuf cannot hold 2 GB in one file; weights beyond this go into a file beside it.
MAX_BYTES_INSIDE = 1_800_000_000


def graph_inputs(config: EncoderConfig) -> tuple[str, ...]:
    """The inputs of the graph, each int64 [B, T]: token_type_ids only where the model tells types apart."""
    return INPUTS if config.type_vocab_size > 1 else INPUTS[:2]


def check_opset(opset: int) -> None:
    """Raise ``ExportError`` for an opset that no graph can be written in."""
    if not OPSET <= opset <= LAST_OPSET:
        why = "LayerNormalization is an operator from 17 on" if opset < OPSET else "later ones are not known"
        raise ExportError(f"opset {opset}: expected {OPSET} to {LAST_OPSET} ({why}); use {OPSET}")


def save_graph(graph: "ModelProto", path: Path) -> None:
    """Write ``graph`` to ``path``; if it is very large its weights go to ``path``.data.

    Raises:
        ExportError: the file cannot be written.
    """
    import onnx

    # Of the weights alone, because a message beyond 2 GB does not tell its size.
    size = sum(len(one.raw_data) for one in graph.graph.initializer)
    try:
        if size > MAX_BYTES_INSIDE:
            # From a copy, because onnx moves the weights out of the graph that it is given.
            copied = type(graph)()
            copied.CopyFrom(graph)
            onnx.save_model(copied, str(path), save_as_external_data=True, location=f"{path.name}.data")
        else:
            onnx.save_model(graph, str(path))
    except OSError as error:
        raise ExportError(f"{path}: the ONNX graph cannot be written: {error}") from error


def build_graph(
    model: "Classifier", *, form: GraphForm = "portable", opset: int | None = None
) -> "ModelProto":
    """The graph of ``model`` in evaluation mode, weights as float32 inside; by default in opset 17.

    Inputs as ``graph_inputs`` says, ``attention_mask`` being non-zero where a token exists; output ``logits``
    float32 [B, C]. A row without tokens has finite logits, the same as in torch.

    Raises:
        ExportError: ``opset`` is none that a graph can be written in.
    """
    opset = OPSET if opset is None else opset
    check_opset(opset)
    builder = GraphBuilder.of_model(model)
    _GraphWriter(builder, model.config, form).write_logits()
    return _assemble(builder, model.config, form, opset, OUTPUT, model.task.num_outputs)


def build_vector_graph(model: "Classifier", choice: Choice, *, form: GraphForm = "fused") -> "ModelProto":
    """The graph of ``model``'s encoder up to the vectors of ``choice``: inputs as in ``build_graph``.

    Output ``vectors`` float32 [B, D], of whatever length they come; zeros for a row without tokens. It has
    no layers above the highest one chosen.
    """
    builder = GraphBuilder.of_model(model)
    _GraphWriter(builder, model.config, form).write_vectors(choice)
    return _assemble(builder, model.config, form, OPSET, VECTORS, model.config.hidden_size)


def _assemble(
    builder: GraphBuilder, config: EncoderConfig, form: GraphForm, opset: int, output: str, width: int
) -> "ModelProto":
    """The nodes of ``builder`` as a graph with one output, float32 [B, ``width``]."""
    from onnx import TensorProto, helper

    graph = helper.make_graph(
        builder.nodes,
        "classifier" if output == OUTPUT else "encoder",
        [
            helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "sequence"])
            for name in graph_inputs(config)
        ],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, ["batch", width])],
        initializer=builder.initializers,
    )
    imports = [helper.make_opsetid("", opset)]
    # The oldest version of the file format that has this opset: newer ones shut older runtimes out.
    ir_version = helper.find_min_ir_version_for(imports)
    if form == "fused":
        imports.append(helper.make_opsetid(CONTRIB, 1))
    return helper.make_model(graph, opset_imports=imports, ir_version=ir_version, producer_name="enc")


class _GraphWriter:
    """Writes all nodes from the inputs to the logits, or to vectors, in the parts of one form."""

    def __init__(self, builder: GraphBuilder, config: EncoderConfig, form: GraphForm) -> None:
        self._builder, self._config = builder, config
        self._parts = (FusedParts if form == "fused" else PortableParts)(builder, config)

    def write_logits(self) -> None:
        """All layers, of the last one the first token only, and the classifier."""
        builder, config = self._builder, self._config
        tokens = read_mask(builder)
        keys = self._parts.keys(tokens.mask)
        x, normed = self._embed(tokens.exists)
        for index in range(config.num_hidden_layers - 1):
            mixed = self._attention(index, normed, normed, keys)
            x, normed = self._rest_of_layer(index, x, mixed)
        # Of the last layer one token is used, so no other asks.
        index, asking = config.num_hidden_layers - 1, builder.take(normed, tokens.first)  # [B, 1, D]
        x = asking if config.norm == "post" else builder.take(x, tokens.first)
        mixed = self._attention(index, asking, normed, keys)
        _, normed = self._rest_of_layer(index, x, mixed)
        pooled = builder.add("Squeeze", normed, builder.integers(1))
        pooled = builder.add("Mul", pooled, tokens.any)  # [B, D]
        pooled = builder.linear("classifier.dense", pooled)
        pooled = CLASSIFIER_ACTIVATIONS[config.classifier.activation](builder, pooled)
        builder.linear("classifier.output", pooled, output=OUTPUT)

    def write_vectors(self, choice: Choice) -> None:
        """As many layers as ``choice`` takes, and its pooling; see ``encoder.pooling.pool``."""
        builder, config = self._builder, self._config
        tokens = read_mask(builder)
        keys = self._parts.keys(tokens.mask)
        x, normed = self._embed(tokens.exists)
        states = [x]
        for index in range(choice.states[-1]):
            mixed = self._attention(index, normed, normed, keys)
            x, normed = self._rest_of_layer(index, x, mixed)
            is_last = index == config.num_hidden_layers - 1
            states.append(normed if config.norm == "post" or is_last else x)
        pool(builder, [states[number] for number in choice.states], choice.pooling, tokens, output=VECTORS)

    def _embed(self, exists: str) -> tuple[str, str]:
        """The embeddings [B, T, D], and what the first layer reads of them, post-norm the same."""
        builder, config = self._builder, self._config
        x = self._parts.embed(self._positions(exists))
        if config.embedding_size != config.hidden_size:
            x = builder.linear("encoder.embeddings.projection", x)  # [B, T, D]
        if config.norm == "post":
            return x, x
        return x, builder.layer_norm("encoder.layers.0.attention_norm", x, config.layer_norm_eps)

    def _positions(self, exists: str) -> str:
        """The row of the position table that each token uses, int64 [B, T].

        The n-th token has position n − 1; what is masked before the first gets position 0, and no one looks.
        """
        builder, offset = self._builder, self._config.position_offset
        count = builder.add("CumSum", exists, builder.constant(np.array(1, dtype=np.int64)))
        position = builder.add("Max", builder.add("Sub", count, builder.integers(1)), builder.integers(0))
        return builder.add("Add", position, builder.integers(offset)) if offset else position

    def _attention(self, index: int, asking: str, normed: str, keys: str) -> str | None:
        """What ``asking`` [B, Q, D] finds in ``normed`` [B, T, D], without the output bias: [B, Q, D].

        ``None`` where no head is left.
        """
        shape, name = self._config.layers[index], f"encoder.layers.{index}.attention"
        if not shape.num_attention_heads:
            return None
        return self._builder.product(
            f"{name}.output", self._parts.attention(shape, name, asking, normed, keys)
        )

    def _rest_of_layer(self, index: int, x: str, mixed: str | None) -> tuple[str, str]:
        """From x [B, Q, D], to which the residuals add, and the product of attention to the end of a layer.

        Returns what the next residual adds to and what the next sublayer reads, post-norm the same.
        """
        builder, name = self._builder, f"encoder.layers.{index}"
        after_attention, after_feed_forward = self._norms(index)
        x, normed = self._parts.join(x, mixed, f"{name}.attention.output", after_attention)
        product = None
        if self._config.layers[index].intermediate_size:
            inner = builder.product(f"{name}.feed_forward.intermediate", normed)
            bias = builder.parameter(f"{name}.feed_forward.intermediate.bias")
            product = builder.product(f"{name}.feed_forward.output", self._parts.activate(inner or "", bias))
        return self._parts.join(x, product, f"{name}.feed_forward.output", after_feed_forward)

    def _norms(self, index: int) -> tuple[str, str]:
        """The norms that follow the attention and the feed-forward of layer ``index``."""
        name = f"encoder.layers.{index}"
        if self._config.norm == "post":
            return f"{name}.attention_norm", f"{name}.feed_forward_norm"
        is_last = index == self._config.num_hidden_layers - 1
        after = "encoder.final_norm" if is_last else f"encoder.layers.{index + 1}.attention_norm"
        return f"{name}.feed_forward_norm", after
