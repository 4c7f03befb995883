"""The graph of an exported classifier, made to give vectors instead of logits."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from compress.graph_builder import GraphBuilder
from compress.graph_tokens import pool, read_mask
from compress.onnx_graph import VECTORS
from encoder.config import EncoderConfig
from encoder.errors import ConfigError, ExportError
from encoder.vector_choice import Choice, choose

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

PREFIX = "vectors_"
# The last layer of which a classifier's graph computes every token.
LAST_WHOLE = "-2"


def check_choice(choice: Choice, config: EncoderConfig) -> None:
    """Raise ``ConfigError`` for vectors that a classifier's graph has nothing to make of.

    Of its last layer it computes the first token alone, which is all that a classifier reads.
    """
    if is_computed(choice, config):
        return
    last = config.num_hidden_layers
    below = f"--layers {LAST_WHOLE} (layer {last - 1}) or " if last > 1 else ""
    raise ConfigError(
        f"--layers {choice.layers} --pooling {choice.pooling}: the graph of an exported classifier computes "
        f"only the first token in its last layer, {last}. Take {below}--layers -1 --pooling cls; or the "
        "model it was made of, in --runtime onnx-fp32 or onnx-int8"
    )


def is_computed(choice: Choice, config: EncoderConfig) -> bool:
    """Whether a classifier's graph computes all that the vectors of ``choice`` are made of."""
    if not config.reads_first_token_only or choice.states[-1] < config.num_hidden_layers:
        return True
    return len(choice.states) == 1 and choice.pooling == "cls"


def nearest_choice(choice: Choice, config: EncoderConfig) -> Choice:
    """``choice``, or where a classifier's graph does not compute it, the same of the layer below the last."""
    if is_computed(choice, config) or config.num_hidden_layers == 1:
        return choice
    return choose(LAST_WHOLE, choice.pooling, config.num_hidden_layers)


def cut_to_vectors(graph: "ModelProto", config: EncoderConfig, choice: Choice) -> "ModelProto":
    """``graph`` as far as the vectors of ``choice`` need it, which are its output: float32 [B, D].

    Its inputs are the same, its layers in the precision they were exported in.

    Raises:
        ConfigError: see ``check_choice``. ExportError: the graph was not written by this version of enc.
    """
    from onnx import TensorProto, helper

    check_choice(choice, config)
    nodes = list(graph.graph.node)
    states = [_state(nodes, config, number) for number in choice.states]
    builder = GraphBuilder({}, prefix=PREFIX)
    states = [builder.add("Cast", state, to=TensorProto.FLOAT) for state in states]
    if choice.states[-1] == config.num_hidden_layers and config.reads_first_token_only:  # [B, 1, D] already
        builder.add("Squeeze", states[0], builder.integers(1), output=VECTORS)
    else:
        pool(builder, states, choice.pooling, read_mask(builder), output=VECTORS)
    needed = _needed([*nodes, *builder.nodes], VECTORS)
    names = {name for node in needed for name in node.input}
    cut = type(graph)()
    cut.CopyFrom(graph)
    del cut.graph.node[:], cut.graph.output[:], cut.graph.initializer[:]
    cut.graph.node.extend(needed)
    weights = [*graph.graph.initializer, *builder.initializers]
    cut.graph.initializer.extend(one for one in weights if one.name in names)
    output = helper.make_tensor_value_info(VECTORS, TensorProto.FLOAT, ["batch", config.hidden_size])
    cut.graph.output.append(output)
    return cut


def _state(nodes: "Iterable[NodeProto]", config: EncoderConfig, number: int) -> str:
    """The name of hidden state ``number`` of L+1: what goes from one layer to the next."""
    last = config.num_hidden_layers
    if config.norm == "post" or number == last:
        norm = f"encoder.layers.{number - 1}.feed_forward_norm" if number else "encoder.embeddings.norm"
        norm = "encoder.final_norm" if config.norm == "pre" else norm
        is_read = False
    elif not config.layers[number].attention_norm:  # ModernBERT's first
        norm, is_read = "encoder.embeddings.norm", False
    else:
        norm, is_read = f"encoder.layers.{number}.attention_norm", True
    for node in nodes:
        if f"{norm}.weight" in node.input:
            return str(node.input[0] if is_read else node.output[0])
    raise ExportError(
        f"no {norm} in the exported graph: another version of enc wrote it; export the model again"
    )


def _needed(nodes: "list[NodeProto]", output: str) -> "list[NodeProto]":
    """Those of ``nodes``, in an order in which they can be computed, that ``output`` depends on."""
    wanted, kept = {output}, []
    for node in reversed(nodes):
        if wanted.intersection(node.output):
            wanted.update(node.input)
            kept.append(node)
    return kept[::-1]
