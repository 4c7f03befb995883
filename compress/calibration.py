"""The ranges of activations on rows of the user's own, so that 8-bit scales are fixed beforehand."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from compress.onnx_graph import OUTPUT, save_graph
from compress.quantized_graph import linear_layers
from encoder.rows import TokenizedRows

if TYPE_CHECKING:
    from onnx import ModelProto

Range = tuple[float, float]  # lowest, highest

BATCH_ROWS = 8


def activation_ranges(graph: "ModelProto", rows: TokenizedRows, *, threads: int = 1) -> dict[str, Range]:
    """For each activation that a linear layer of ``graph`` reads, the range to divide into 255 steps.

    The lowest and the highest value on ``rows``, and 0: what is rare and large matters most in these layers
    (docs/decisions/0008). Rows of one length are run together, so that padding counts for nothing.
    """
    names = sorted(set(linear_layers(graph).values()))
    ranges: dict[str, Range] = dict.fromkeys(names, (0.0, 0.0))
    for found in _run(graph, names, _batches_of_one_length(rows), threads):
        for name, values in found.items():
            lowest, highest = ranges[name]
            ranges[name] = min(lowest, float(values.min())), max(highest, float(values.max()))
    return ranges


def _batches_of_one_length(rows: TokenizedRows) -> list[TokenizedRows]:
    order = np.argsort(rows.lengths, kind="stable")
    lengths = rows.lengths[order]
    groups = np.split(order, np.flatnonzero(np.diff(lengths)) + 1)
    return [
        rows.select(group[start : start + BATCH_ROWS])
        for group in groups
        if len(group) and rows.lengths[group[0]]
        for start in range(0, len(group), BATCH_ROWS)
    ]


def _run(
    graph: "ModelProto", names: list[str], batches: list[TokenizedRows], threads: int
) -> Iterator[dict[str, NDArray[np.float32]]]:
    """The values of the activations ``names``, a batch at a time."""
    import onnxruntime
    from onnx import TensorProto, helper

    from compress.runtimes import pad_rows

    probe = type(graph)()
    probe.CopyFrom(graph)
    probe.graph.output.extend(
        helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names if name != OUTPUT
    )
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    with tempfile.TemporaryDirectory(prefix="enc-") as folder:  # a file may be larger than 2 GB
        path = Path(folder) / "graph.onnx"
        save_graph(probe, path)
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    wanted = {node.name for node in session.get_inputs()}
    for batch in batches:
        feed = {name: array for name, array in pad_rows(batch).items() if name in wanted}
        yield dict(zip(names, session.run(names, feed), strict=True))
