"""Claims about vectors from torch and from ONNX graphs."""

from pathlib import Path

import numpy as np
import pytest

from compress.embedders import open_embedder
from compress.onnx_graph import build_vector_graph, save_graph
from compress.runtimes import open_runtime
from encoder.checkpoint import save_classifier
from encoder.config import LayerShape
from encoder.embedding import normalize
from encoder.vector_choice import POOLINGS, choose

LENGTHS = [5, 1, 12, 3, 8, 8]


def embed(runtime: str, folder: Path, rows, layers: str, pooling, depth: int = 2):
    embedder = open_embedder(runtime, folder, choose(layers, pooling, depth), device="cpu", threads=1)
    return embedder(rows, lambda count: None)


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("layers", ["-1", "1", "0", "-2:"])
def test_graph_makes_the_vectors_of_torch(tiny_folder, rows_of, pooling, layers) -> None:
    rows = rows_of(LENGTHS)
    found = embed("onnx-fp32", tiny_folder, rows, layers, pooling)
    assert found == pytest.approx(embed("torch-fp32", tiny_folder, rows, layers, pooling), abs=1e-4)


@pytest.mark.parametrize("form", ["portable", "fused"])
@pytest.mark.parametrize("changes", [{"norm": "pre"}, {"embedding_size": 8}, {"type_vocab_size": 0}])
def test_every_shape_has_its_graph(classifier, config_with, rows_of, tmp_path, form, changes) -> None:
    pruned = LayerShape(heads=(1, 3), head_size=4, intermediate_size=20)
    bare = LayerShape(heads=(), head_size=4, intermediate_size=0)
    model = classifier(config_with(layers=(pruned, bare, pruned), **changes))

    class NoTokenizer:
        def save(self, folder: Path) -> None: ...

    save_classifier(model, NoTokenizer(), tmp_path / "model")
    rows = rows_of(LENGTHS)
    for layers in ("-1", "2"):
        graph = build_vector_graph(model, choose(layers, "mean", 3), form=form)
        save_graph(graph, tmp_path / "graph.onnx")
        runtime = open_runtime("onnx-fp32", tmp_path / "graph.onnx", device="cpu", threads=1)
        found = runtime.run(runtime.prepare(rows))
        expected = embed("torch-fp32", tmp_path / "model", rows, layers, "mean", depth=3)
        assert found == pytest.approx(expected, abs=1e-4)


def test_int8_vectors_point_nearly_the_same_way(tiny_folder, rows_of) -> None:
    rows = rows_of(LENGTHS)
    full, small = (
        normalize(embed(runtime, tiny_folder, rows, "-1", "mean")) for runtime in ("torch-fp32", "onnx-int8")
    )
    assert (full * small).sum(1) == pytest.approx(np.ones(len(rows)), abs=0.02)


def test_rows_are_counted(tiny_folder, rows_of) -> None:
    for runtime in ("torch-fp32", "onnx-fp32"):
        counts: list[int] = []
        embedder = open_embedder(runtime, tiny_folder, choose("-1", "mean", 2), device="cpu", threads=1)
        embedder(rows_of(LENGTHS), counts.append)
        assert sum(counts) == len(LENGTHS)
