"""A graph rewritten with 8-bit weights: the linear layers, and if asked for the embedding tables."""

from collections import Counter
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from compress.graph_builder import CONTRIB, GraphBuilder

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

TABLES = ("encoder.embeddings.word.weight", "encoder.embeddings.position.weight")
PREFIX = "int8_"


def is_part_of(name: str, parts: Collection[str]) -> bool:
    """Whether the parameter ``name`` is one of ``parts`` or inside one: they are dotted names of modules."""
    return any(name == part or name.startswith(f"{part}.") for part in parts)


def linear_layers(graph: "ModelProto") -> dict[str, str]:
    """The weights of all linear layers in ``graph``, each with the name of the activation it multiplies."""
    matrices = {one.name for one in graph.graph.initializer if len(one.dims) == 2}
    return {
        node.input[1]: node.input[0]
        for node in graph.graph.node
        if node.op_type in ("MatMul", "Attention") and node.input[1] in matrices
    }


def quantize_weight(
    weight: NDArray[np.float32], largest: int
) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """float [in, out] → int8 [in, out] within ±``largest``, and the scale of each output [out]."""
    scale = np.maximum(np.abs(weight).max(axis=0) / largest, np.finfo(np.float32).tiny)
    return np.rint(weight / scale).astype(np.int8), scale.astype(np.float32)


class Int8Rewriter:
    """Replaces the linear layers of a graph by 8-bit ones.

    ``ranges``: of each activation (lowest, highest), fixed beforehand; without, they are looked up at run
    time, once for a whole batch. ``largest``: of a weight, 127, or 63 where 8-bit products may saturate.
    """

    def __init__(
        self,
        graph: "ModelProto",
        *,
        keep_float: Collection[str] = (),
        largest: int = 127,
        ranges: Mapping[str, tuple[float, float]] | None = None,
    ) -> None:
        self._graph = graph
        self._keep_float, self._largest, self._ranges = keep_float, largest, ranges
        self._builder = GraphBuilder({}, prefix=PREFIX)
        self._arrays = {one.name: one for one in graph.graph.initializer}
        self._fused = any(entry.domain == CONTRIB for entry in graph.opset_import)
        self._readers = Counter(name for node in graph.graph.node for name in node.input)
        self._as_int8: dict[
            str, tuple[str, str, str]
        ] = {}  # activation → itself in 8 bits, scale, zero point

    def rewrite(self, *, embeddings: bool) -> "ModelProto":
        """The graph with 8-bit layers; with ``embeddings`` their tables too, a scale for each row."""
        layers = {weight for weight in linear_layers(self._graph) if not is_part_of(weight, self._keep_float)}
        nodes = list(self._graph.graph.node)
        biases = self._biases(nodes, layers) if self._fused else {}
        absorbed = {add.output[0] for add in biases.values()}
        for node in nodes:
            if node.output[0] in absorbed:
                continue
            if node.op_type == "MatMul" and node.input[1] in layers:
                self._linear(node, biases.get(node.output[0]))
            elif node.op_type == "Attention" and node.input[1] in layers:
                self._attention(node)
            elif (
                embeddings
                and node.op_type == "EmbedLayerNormalization"
                and any(map(self._is_table, node.input))
            ):
                self._embed(node)
            elif embeddings and node.op_type == "Gather" and self._is_table(node.input[0]):
                self._look_up(node.input[0], node.input[1], output=node.output[0])
            else:
                self._builder.nodes.append(node)
        return self._finished()

    def _finished(self) -> "ModelProto":
        finished = type(self._graph)()
        finished.CopyFrom(self._graph)
        used = {name for node in self._builder.nodes for name in node.input}
        kept = [one for one in self._graph.graph.initializer if one.name in used]
        del finished.graph.node[:], finished.graph.initializer[:]
        finished.graph.node.extend(self._builder.nodes)
        finished.graph.initializer.extend([*kept, *self._builder.initializers])
        return finished

    def _biases(self, nodes: list["NodeProto"], layers: Collection[str]) -> dict[str, Any]:
        """Products of ``layers`` that are only used to add a bias, each with that Add."""
        products = {node.output[0] for node in nodes if node.op_type == "MatMul" and node.input[1] in layers}
        return {
            node.input[0]: node
            for node in nodes
            if node.op_type == "Add"
            and node.input[0] in products
            and self._readers[node.input[0]] == 1
            and node.input[1] in self._arrays
            and len(self._arrays[node.input[1]].dims) == 1
        }

    def _array(self, name: str) -> NDArray[Any]:
        from onnx import numpy_helper

        array: NDArray[Any] = numpy_helper.to_array(self._arrays[name])
        return array

    def _linear(self, node: "NodeProto", add: Any) -> None:
        """x · weight (+ bias) in 8 bits, under the name that the float result had."""
        builder, x = self._builder, node.input[0]
        weight_name, scale_name = self._weight(node.input[1])
        bias, output = (add.input[1], add.output[0]) if add is not None else ("", node.output[0])
        x_int8, x_scale, x_zero = self._activation(x)
        if self._fused:
            inputs = [x_int8, weight_name, x_scale, scale_name, x_zero, "", bias]
            while not inputs[-1]:
                inputs.pop()
            builder.add("MatMulIntegerToFloat", *inputs, output=output, domain=CONTRIB)
            return
        from onnx import TensorProto

        product = builder.add("MatMulInteger", x_int8, weight_name, x_zero)
        product = builder.add("Cast", product, to=TensorProto.FLOAT)
        builder.add("Mul", product, builder.add("Mul", x_scale, scale_name), output=output)

    def _attention(self, node: "NodeProto") -> None:
        """Attention with its three projections in 8 bits."""
        from onnx import helper

        x, weight, bias, keys = node.input
        weight, scale = self._weight(weight)
        x_int8, x_scale, x_zero = self._activation(x)
        attributes = {one.name: helper.get_attribute_value(one) for one in node.attribute}
        del attributes["qkv_hidden_sizes"]  # always equal here, and unknown to this operator
        inputs = [x_int8, weight, bias, x_scale, scale, keys, x_zero]
        self._builder.add("QAttention", *inputs, output=node.output[0], domain=CONTRIB, **attributes)

    def _weight(self, name: str) -> tuple[str, str]:
        """A weight in 8 bits and its scales."""
        weight, scale = quantize_weight(self._array(name), self._largest)
        quantized = self._builder.constant(weight, f"{name}_quantized")
        return quantized, self._builder.constant(scale, f"{name}_scale")

    def _activation(self, x: str) -> tuple[str, str, str]:
        """``x`` in 8 bits, its scale and its zero point; computed once for all that read it."""
        if x not in self._as_int8:
            builder, number = self._builder, len(self._builder.nodes)
            if self._ranges is None:
                outputs = [f"{PREFIX}{kind}_{number}" for kind in ("x", "scale", "zero")]
                builder.add_many("DynamicQuantizeLinear", [x], outputs)
                quantized, scale, zero = outputs
            else:
                lowest, highest = self._ranges[x]
                step = max((highest - lowest) / 255, float(np.finfo(np.float32).tiny))
                scale = builder.number(step)
                zero = builder.constant(np.array(np.clip(np.rint(-lowest / step), 0, 255), dtype=np.uint8))
                quantized = builder.add("QuantizeLinear", x, scale, zero)
            self._as_int8[x] = quantized, scale, zero
        return self._as_int8[x]

    def _is_table(self, name: str) -> bool:
        return name in TABLES and name in self._arrays and not is_part_of(name, self._keep_float)

    def _look_up(self, table: str, index: str, *, output: str | None = None) -> str:
        """Rows of a table, of 8 bits if it is one of ``TABLES``."""
        from onnx import TensorProto

        builder = self._builder
        if not self._is_table(table):
            return builder.add("Gather", table, index, output=output)
        rows, scale = quantize_weight(self._array(table).T, 127)
        quantized = builder.constant(rows.T, f"{table}_quantized")
        found = builder.add("Cast", builder.add("Gather", quantized, index), to=TensorProto.FLOAT)
        of_row = builder.add("Gather", builder.constant(scale[:, None], f"{table}_scale"), index)  # [B, T, 1]
        return builder.add("Mul", found, of_row, output=output)

    def _embed(self, node: "NodeProto") -> None:
        """What EmbedLayerNormalization does, which has no 8-bit form that keeps a scale for each row."""
        builder = self._builder
        ids, types, words, positions, type_table, scale, shift, _, position_ids = node.input
        x = builder.sum(self._look_up(words, ids), self._look_up(positions, position_ids))
        if types:
            x = builder.sum(x, self._look_up(type_table, types))
        (epsilon,) = (one.f for one in node.attribute if one.name == "epsilon")
        builder.add("LayerNormalization", x, scale, shift, axis=-1, epsilon=epsilon, output=node.output[0])
