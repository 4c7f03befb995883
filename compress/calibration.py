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

SAMPLE = 200_000  # values kept of each activation, to choose its range by
BATCH_ROWS = 8
CLIPPED = np.linspace(1.0, 0.2, 17)  # the shares of the whole range that are tried


def activation_ranges(graph: "ModelProto", rows: TokenizedRows, *, threads: int = 1) -> dict[str, Range]:
    """For each activation that a linear layer of ``graph`` reads, the range to divide into 255 steps.

    Of ranges from the whole one down to a fifth of it, both ends shortened alike, the one with the least mean
    squared error on ``rows``. Rows of one length are run together, so that padding counts for nothing.
    """
    names = sorted(set(linear_layers(graph).values()))
    lowest, highest = dict.fromkeys(names, 0.0), dict.fromkeys(names, 0.0)
    samples: dict[str, list[NDArray[np.float32]]] = {name: [] for name in names}
    draw = np.random.default_rng(0)
    batches = _batches_of_one_length(rows)
    for found in _run(graph, names, batches, threads):
        for name, values in found.items():
            flat = values.ravel()
            lowest[name] = min(lowest[name], float(flat.min()))
            highest[name] = max(highest[name], float(flat.max()))
            size = min(len(flat), max(1, SAMPLE // len(batches)))
            samples[name].append(flat[draw.integers(0, len(flat), size)])
    return {
        name: least_error_range(np.concatenate(samples[name]), lowest[name], highest[name]) for name in names
    }


def least_error_range(values: NDArray[np.float32], lowest: float, highest: float) -> Range:
    """The range with the least squared error of ``values`` in 8 bits; it holds 0."""
    best, least = (lowest, highest), np.inf
    for share in CLIPPED:
        low, high = lowest * share, highest * share
        step = (high - low) / 255
        if step <= 0:
            break
        zero = np.rint(-low / step)
        rounded = (np.clip(np.rint(values / step) + zero, 0, 255) - zero) * step
        error = float(np.square(rounded - values).mean())
        if error < least:
            best, least = (low, high), error
    return best


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
