"""A graph with 16-bit weights and activations, for devices that compute in them."""

from typing import TYPE_CHECKING

import numpy as np

from compress.onnx_graph import OUTPUT

if TYPE_CHECKING:
    from onnx import ModelProto

# What a masked score is lowered to: small enough for a weight of 0, and far enough from −65504, the lowest
# number, that adding a score to it cannot make −∞, which a softmax over nothing else turns into NaN.
MASKED = -30000.0
LOWEST = float(np.finfo(np.float32).min)  # what it is lowered to in float32


def to_fp16(graph: "ModelProto") -> "ModelProto":
    """``graph`` in float16: weights, activations and constants; the logits come out as float32.

    Weights beyond ±65504 become the largest number there is.
    """
    from onnx import TensorProto, helper, numpy_helper

    half = type(graph)()
    half.CopyFrom(graph)
    limit = np.finfo(np.float16)
    for index, one in enumerate(half.graph.initializer):
        if one.data_type == TensorProto.FLOAT:
            array = numpy_helper.to_array(one)
            array = np.where(array < LOWEST / 2, MASKED, np.clip(array, limit.min, limit.max))
            half.graph.initializer[index].CopyFrom(
                numpy_helper.from_array(array.astype(np.float16), one.name)
            )
    for node in half.graph.node:
        for attribute in node.attribute:
            if node.op_type == "Cast" and attribute.name == "to" and attribute.i == TensorProto.FLOAT:
                attribute.i = TensorProto.FLOAT16
            if attribute.name == "mask_filter_value":
                attribute.f = MASKED
        for place, name in enumerate(node.output):
            if name == OUTPUT:
                node.output[place] = f"{OUTPUT}_fp16"
    half.graph.node.append(
        helper.make_node("Cast", [f"{OUTPUT}_fp16"], [OUTPUT], name="Cast_to_fp32", to=TensorProto.FLOAT)
    )
    return half
