"""The ways to turn rows into vectors, behind one face: torch, or an ONNX graph made for it or exported."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from compress.deployed import find_graph
from compress.runtimes import PRECISIONS, open_runtime, run_in_batches, runs_a_graph
from encoder.model_folder import is_exported, read_config, read_task
from encoder.rows import TokenizedRows
from encoder.task import Task
from encoder.vector_choice import Choice

if TYPE_CHECKING:
    from onnx import ModelProto

    from encoder.prediction import Precision

# Told how many rows were added.
OnRows = Callable[[int], None]
# Rows to vectors float32 [R, D], in their order.
Embedder = Callable[[TokenizedRows, OnRows], NDArray[np.float32]]

# Rows that an ONNX graph computes at once; it pads them to the longest, so like rows go together.
BATCH_ROWS = 32
# After so many it is told how far it is.
TOLD_ROWS = 512


def open_embedder(runtime: str, model: Path, choice: Choice, *, device: str, threads: int) -> Embedder:
    """The encoder in the folder ``model``, ready to make the vectors of ``choice`` in ``runtime``.

    An exported model runs in the runtime that it was exported for, no other. Of an int8 graph the vectors of
    a text depend a little on what it is computed with, unless its scales were fixed beforehand: otherwise
    activations are scaled once for a batch.

    Raises:
        CheckpointError: it cannot be loaded. ConfigError: an exported graph does not compute them.
    """
    if runs_a_graph(runtime):
        return _open_graph(runtime, model, choice, device=device, threads=threads)
    from encoder.checkpoint import load_encoder
    from encoder.embedding import embed_rows

    encoder = load_encoder(model).to(device)
    precision: Precision = "bf16" if PRECISIONS[runtime] == "bf16" else "fp32"

    def embed(rows: TokenizedRows, on_rows: OnRows) -> NDArray[np.float32]:
        (vectors,) = embed_rows(encoder, rows, [choice], precision=precision, device=device, on_rows=on_rows)
        return vectors

    return embed


def _open_graph(runtime: str, model: Path, choice: Choice, *, device: str, threads: int) -> Embedder:
    from compress.onnx_graph import save_graph

    width = read_config(model).hidden_size
    graph = _exported_graph(model, choice) if is_exported(model) else _own_graph(runtime, model, choice)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "vectors.onnx"
        save_graph(graph, path)
        opened = open_runtime(runtime, path, device=device, threads=threads)

    def embed(rows: TokenizedRows, on_rows: OnRows) -> NDArray[np.float32]:
        order = np.argsort(-rows.lengths, kind="stable")
        vectors = np.empty((len(rows), width), dtype=np.float32)
        for start in range(0, len(order), TOLD_ROWS):
            index = order[start : start + TOLD_ROWS]
            vectors[index] = run_in_batches(opened, rows.select(index), BATCH_ROWS)
            on_rows(len(index))
        return vectors

    return embed


def _own_graph(runtime: str, model: Path, choice: Choice) -> "ModelProto":
    """A graph of the encoder in the folder ``model``."""
    from compress.onnx_graph import build_vector_graph
    from compress.quantization import quantize_dynamic
    from encoder.checkpoint import load_classifier

    # The classifier, drawn where there is none, has no part in the graph.
    loaded = load_classifier(model, task=read_task(model) or Task(kind="regression"))
    graph = build_vector_graph(loaded, choice)
    return quantize_dynamic(graph) if PRECISIONS[runtime] == "int8" else graph


def _exported_graph(model: Path, choice: Choice) -> "ModelProto":
    """The graph that is in ``model``, as far as it is needed."""
    import onnx

    from compress.exported_vectors import cut_to_vectors

    return cut_to_vectors(onnx.load(find_graph(model)), read_config(model), choice)
