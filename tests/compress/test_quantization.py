from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from compress import quantization
from compress.onnx_graph import write_onnx
from compress.quantization import int8_is_exact, quantize_dynamic
from encoder.config import EncoderConfig
from encoder.errors import ExportError
from encoder.model import Classifier


@pytest.fixture
def graph(
    config_with: Callable[..., EncoderConfig], classifier: Callable[..., Classifier], tmp_path: Path
) -> Path:
    config = config_with(hidden_size=32, embedding_size=32, vocab_size=20)
    write_onnx(classifier(config), tmp_path / "fp32.onnx")
    return tmp_path / "fp32.onnx"


def run(path: Path) -> np.ndarray:
    ids = np.random.default_rng(0).integers(0, 20, (8, 12))
    feed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
    logits: np.ndarray = onnxruntime.InferenceSession(str(path)).run(None, feed)[0]
    return logits


@pytest.mark.parametrize("reduce_range", [False, True])
def test_int8_is_close_and_smaller(graph: Path, tmp_path: Path, reduce_range: bool) -> None:
    target = tmp_path / "int8.onnx"
    quantize_dynamic(graph, target, reduce_range=reduce_range)
    expected, found = run(graph), run(target)
    assert np.corrcoef(expected.ravel(), found.ravel())[0, 1] > 0.98
    assert not np.array_equal(expected, found)


def test_every_weight_matrix_is_int8_with_a_scale_for_each_output(graph: Path, tmp_path: Path) -> None:
    quantize_dynamic(graph, tmp_path / "int8.onnx")
    model = onnx.load(str(tmp_path / "int8.onnx")).graph
    operators = [node.op_type for node in model.node]
    # 2 layers × (query, key, value, output, intermediate, output) and 2 in the classifier; attention's own
    # 2 × 2 stay float
    assert (operators.count("MatMulInteger"), operators.count("MatMul")) == (14, 4)
    sizes = {entry.name: tuple(entry.dims) for entry in model.initializer}
    assert sizes["encoder.layers.0.attention.query.weight_scale"] == (16,)
    assert sizes["encoder.embeddings.word.weight"] == (20, 32)


@pytest.mark.parametrize(
    ("flags", "exact"),
    [(("avx2",), False), (("avx2", "avx512_vnni"), True), (("avx2", "avx_vnni"), True), (("asimddp",), True)],
)
def test_a_cpu_without_the_instructions_gets_seven_bits(
    graph: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...], exact: bool
) -> None:
    monkeypatch.setattr(quantization, "cpu_flags", lambda: flags)
    assert int8_is_exact() is exact
    quantize_dynamic(graph, tmp_path / "int8.onnx")
    weights = [
        onnx.numpy_helper.to_array(entry)
        for entry in onnx.load(str(tmp_path / "int8.onnx")).graph.initializer
        if entry.name.endswith("weight_quantized")
    ]
    largest = max(int(np.abs(array.astype(np.int32)).max()) for array in weights)
    assert (largest > 64) is exact


def test_a_file_that_is_no_graph_is_an_export_error(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_text("no graph")
    with pytest.raises(ExportError, match="cannot quantize"):
        quantize_dynamic(tmp_path / "model.onnx", tmp_path / "int8.onnx")
