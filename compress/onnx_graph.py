"""A classifier as an ONNX graph, written node by node from its config and weights.

Nothing is traced, so batch and sequence length stay free and a pruned layer needs no special care. Two forms:
``portable`` has standard operators only, ``fused`` those of ONNX Runtime where they are faster. What a graph
says about masks is what ``Packing`` says: a token that is masked does not exist, wherever it stands, and the
others move up.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from compress.fused_graph import FusedParts, why_not_fused
from compress.graph_builder import CONTRIB, GraphBuilder
from compress.graph_stream import GraphStream, StreamWriter
from compress.graph_tokens import pool, read_mask
from compress.portable_graph import CLASSIFIER_ACTIVATIONS, PortableParts, Turns
from encoder.config import EncoderConfig, LayerShape
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


def possible_form(config: EncoderConfig, form: GraphForm) -> GraphForm:
    """``form``, or portable where ONNX Runtime's own operators cannot do what the model does."""
    return "portable" if why_not_fused(config) else form


def build_graph(
    model: "Classifier", *, form: GraphForm = "portable", opset: int | None = None
) -> "ModelProto":
    """The graph of ``model`` in evaluation mode, weights as float32 inside; by default in opset 17.

    Inputs as ``graph_inputs`` says, ``attention_mask`` being non-zero where a token exists; output ``logits``
    float32 [B, C]. A row without tokens has finite logits, the same as in torch.

    Raises:
        ExportError: ``opset`` is none that a graph can be written in, or the model has no such form.
    """
    if form == "fused" and (why := why_not_fused(model.config)):
        raise ExportError(f"the model has no fused graph: {why}; use the portable one")
    opset = OPSET if opset is None else opset
    check_opset(opset)
    builder = GraphBuilder.of_model(model)
    _GraphWriter(builder, model.config, form).write_logits()
    return _assemble(builder, model.config, form, opset, OUTPUT, model.task.num_outputs)


def build_vector_graph(model: "Classifier", choice: Choice, *, form: GraphForm = "fused") -> "ModelProto":
    """The graph of ``model``'s encoder up to the vectors of ``choice``: inputs as in ``build_graph``.

    Output ``vectors`` float32 [B, D], of whatever length they come; zeros for a row without tokens. It has
    no layers above the highest one chosen, and is portable where the model has no other form.
    """
    form = possible_form(model.config, form)
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
        self._streams = StreamWriter(builder, config)
        self._tokens = read_mask(builder)
        self._keys: dict[tuple[int | None, bool], str] = {}
        self._turns: dict[tuple[int, float], Turns] = {}

    def write_logits(self) -> None:
        """All layers, and the classifier; for a first token's of the last layer no other is computed."""
        builder, config = self._builder, self._config
        stream = self._embed()
        for index in range(config.num_hidden_layers):
            last = index == config.num_hidden_layers - 1
            stream = self._layer(index, stream, first_only=last and config.reads_first_token_only)
        pooled = self._read(stream, config.num_hidden_layers, final=True)
        if config.reads_first_token_only:
            pooled = builder.add("Squeeze", pooled, builder.integers(1))
            pooled = builder.add("Mul", pooled, self._tokens.any)  # [B, D]
        else:
            pooled = pool(builder, [pooled], "mean", self._tokens)
        pooled = builder.linear("classifier.dense", pooled)
        pooled = CLASSIFIER_ACTIVATIONS[config.classifier.activation](builder, pooled)
        pooled = builder.layer_norm("classifier.norm", pooled, config.layer_norm_eps)
        builder.linear("classifier.output", pooled, output=OUTPUT)

    def write_vectors(self, choice: Choice) -> None:
        """As many layers as ``choice`` takes, and its pooling; see ``encoder.pooling.pool``."""
        builder, config = self._builder, self._config
        stream = self._embed()
        chosen = []
        for depth in range(choice.states[-1] + 1):
            if depth:
                stream = self._layer(depth - 1, stream)
            if depth in choice.states:
                residual = f"encoder.layers.{depth}.attention_residual"
                last = depth == config.num_hidden_layers
                state = (
                    self._read(stream, depth, final=True) if last else self._streams.read(stream, residual)
                )
                chosen.append(state)
        pool(builder, chosen, choice.pooling, self._tokens, output=VECTORS)

    def _embed(self) -> GraphStream:
        """The stream that begins with the embeddings [B, T, D]."""
        builder, config = self._builder, self._config
        self._position = self._positions()
        offset = config.position_offset
        rows = builder.add("Add", self._position, builder.integers(offset)) if offset else self._position
        x = self._parts.embed(rows)
        if config.embedding_size != config.hidden_size:
            x = builder.linear("encoder.embeddings.projection", x)  # [B, T, D]
        return self._streams.begin(x)

    def _positions(self) -> str:
        """The position of each token in its row, int64 [B, T].

        The n-th token has position n − 1; what is masked before the first gets position 0, and no one looks.
        """
        builder = self._builder
        count = builder.add("CumSum", self._tokens.exists, builder.integers(1))
        return builder.add("Max", builder.add("Sub", count, builder.integers(1)), builder.integers(0))

    def _layer(self, index: int, stream: GraphStream, *, first_only: bool = False) -> GraphStream:
        """The stream after layer ``index``; with ``first_only`` that of each row's first token, T = 1."""
        builder, config = self._builder, self._config
        name, shape = f"encoder.layers.{index}", config.layers[index]
        normed = asking = self._read(stream, index)
        if first_only:
            asking = builder.take(normed, self._tokens.first)  # [B, 1, D]
            is_sum = normed == stream.growing
            stream = GraphStream(asking) if is_sum else self._streams.take(stream, self._tokens.first)
        product = None
        if shape.num_attention_heads:
            keys, turns = self._sight(shape, first_only)
            mixed = self._parts.attention(shape, f"{name}.attention", asking, normed, keys, turns)
            product = builder.product(f"{name}.attention.output", mixed)
        stream = self._write(stream, 2 * index, f"{name}.attention", product)
        product = None
        if shape.intermediate_size:
            found = self._feed_forward(f"{name}.feed_forward", self._read(stream, index, feed_forward=True))
            product = builder.product(f"{name}.feed_forward.output", found)
        return self._write(stream, 2 * index + 1, f"{name}.feed_forward", product)

    def _feed_forward(self, name: str, x: str) -> str:
        """What the neurons find in x [B, Q, D]: [B, Q, F]."""
        builder = self._builder
        if not self._config.gated:
            inner = f"{name}.intermediate"
            return self._parts.activate(builder.product(inner, x) or "", builder.bias(inner))
        inner, gate = builder.separate(f"{name}.intermediate", [f"{name}.inner", f"{name}.gate"])
        activated = self._parts.activate(builder.product(inner, x) or "", builder.bias(inner))
        return builder.add("Mul", activated, builder.linear(gate, x))

    def _read(
        self, stream: GraphStream, depth: int, *, feed_forward: bool = False, final: bool = False
    ) -> str:
        """What a sublayer of layer ``depth`` gets, or with ``final`` what comes out at the end: [B, Q, D]."""
        config, name = self._config, f"encoder.layers.{depth}"
        kind = "feed_forward" if feed_forward else "attention"
        residual, norm = f"{name}.{kind}_residual", f"{name}.{kind}_norm"
        if final:
            residual, norm = "encoder.final_residual", "encoder.final_norm"
        x = self._streams.read(stream, residual)
        if config.norm == "post":
            return x
        from encoder.residual import norm_eps  # torch, which who only asks for names does not need

        return self._builder.layer_norm(norm, x, norm_eps(config, 2 * depth + feed_forward))

    def _write(self, stream: GraphStream, sublayer: int, module: str, product: str | None) -> GraphStream:
        """The stream with what a sublayer's output projection made of the product."""
        stream = self._streams.write(stream, sublayer, product, self._builder.bias(f"{module}.output"))
        if self._config.norm == "pre":
            return stream
        normed = self._builder.layer_norm(f"{module}_norm", stream.growing or "", self._config.layer_norm_eps)
        return GraphStream(normed)

    def _sight(self, shape: LayerShape, first_only: bool) -> tuple[str, Turns | None]:
        """What the tokens of a layer see, and how they turn; the same in all layers that are alike."""
        turns = None
        if self._config.position_embedding == "rotary":
            turn = (shape.head_size, shape.rope_theta)
            if turn not in self._turns:
                self._turns[turn] = self._parts.turns(self._position, *turn)
            turns = self._turns[turn]
        key = (shape.window, first_only and shape.window is not None)
        if key not in self._keys:
            near = None if shape.window is None else self._near(shape.window, first_only)
            self._keys[key] = self._parts.keys(self._tokens.mask, near)
        return self._keys[key], turns

    def _near(self, window: int, first_only: bool) -> str:
        """Which tokens are at most ``window`` from each that asks, bool [B, Q, T]."""
        builder = self._builder
        keys = builder.add("Unsqueeze", self._position, builder.integers(1))  # [B, 1, T]
        if first_only:
            return builder.add("LessOrEqual", keys, builder.integers(window))
        apart = builder.add("Sub", builder.add("Unsqueeze", self._position, builder.integers(2)), keys)
        return builder.add("LessOrEqual", builder.add("Abs", apart), builder.integers(window))
