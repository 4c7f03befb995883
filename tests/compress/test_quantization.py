from collections.abc import Callable

import numpy as np
import onnx
import onnxruntime
import pytest

from compress import quantization
from compress.calibration import activation_ranges
from compress.onnx_graph import GraphForm, build_graph
from compress.quantization import int8_is_exact, quantize_dynamic, quantize_static
from compress.quantized_graph import linear_layers
from encoder.config import EncoderConfig, LayerShape
from encoder.model import Classifier
from encoder.rows import TokenizedRows

ROWS = [12, 12, 12, 5, 5, 9, 1]


@pytest.fixture(params=["portable", "fused"])
def graph(
    request: pytest.FixtureRequest,
    config_with: Callable[..., EncoderConfig],
    classifier: Callable[..., Classifier],
) -> onnx.ModelProto:
    config = config_with(hidden_size=32, embedding_size=32)
    form: GraphForm = request.param
    return build_graph(classifier(config), form=form)


def run(graph: onnx.ModelProto, length: int = 12) -> np.ndarray:
    ids = np.random.default_rng(0).integers(0, 50, (8, length))
    feed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
    logits: np.ndarray = onnxruntime.InferenceSession(graph.SerializeToString()).run(None, feed)[0]
    return logits


def dtypes(graph: onnx.ModelProto) -> dict[str, np.dtype]:
    return {one.name: onnx.numpy_helper.to_array(one).dtype for one in graph.graph.initializer}


@pytest.mark.parametrize("reduce_range", [False, True])
@pytest.mark.parametrize("embeddings", [False, True])
def test_dynamic_int8_is_close(graph: onnx.ModelProto, reduce_range: bool, embeddings: bool) -> None:
    quantized = quantize_dynamic(graph, reduce_range=reduce_range, embeddings=embeddings)
    onnx.checker.check_model(quantized)
    expected, found = run(graph), run(quantized)
    assert np.corrcoef(expected.ravel(), found.ravel())[0, 1] > 0.98
    assert not np.array_equal(expected, found)


@pytest.mark.parametrize("embeddings", [False, True])
def test_static_int8_is_close(
    graph: onnx.ModelProto, rows_of: Callable[..., TokenizedRows], embeddings: bool
) -> None:
    quantized = quantize_static(graph, rows_of(ROWS), embeddings=embeddings)
    onnx.checker.check_model(quantized)
    expected, found = run(graph), run(quantized)
    assert np.corrcoef(expected.ravel(), found.ravel())[0, 1] > 0.98


def test_all_kept_in_float_is_the_float_graph(graph: onnx.ModelProto) -> None:
    kept = quantize_dynamic(graph, keep_float=["encoder", "classifier"], embeddings=True)
    assert kept == graph
    assert np.array_equal(run(kept), run(graph))


def test_a_part_that_is_kept_is_float_and_the_others_are_not(graph: onnx.ModelProto) -> None:
    found = dtypes(quantize_dynamic(graph, keep_float=["encoder.layers.1.attention", "classifier.dense"]))
    assert found["encoder.layers.1.attention.query.weight"] == np.float32
    assert found["classifier.dense.weight"] == np.float32
    assert found["encoder.layers.1.feed_forward.output.weight_quantized"] == np.int8
    assert found["classifier.output.weight_quantized"] == np.int8
    assert "encoder.layers.0.attention.query.weight" not in found


def test_every_weight_matrix_is_int8_with_a_scale_for_each_output(graph: onnx.ModelProto) -> None:
    quantized = quantize_dynamic(graph)
    sizes = {one.name: tuple(one.dims) for one in quantized.graph.initializer}
    # 2 layers × (query, key, value, output, intermediate, output) and 2 in the classifier; Attention has the
    # first three of a layer in one
    fused = any(node.op_type == "QAttention" for node in quantized.graph.node)
    assert sum(name.endswith("weight_quantized") for name in sizes) == (12 if fused else 14)
    assert sizes["encoder.layers.1.attention.query.weight_scale"] == (16,)
    assert sizes["encoder.embeddings.word.weight"] == (50, 32)
    assert not linear_layers(quantized)


def test_tables_in_8_bits_have_a_scale_for_each_row(graph: onnx.ModelProto) -> None:
    quantized = quantize_dynamic(graph, embeddings=True)
    arrays = {one.name: onnx.numpy_helper.to_array(one) for one in quantized.graph.initializer}
    table = arrays["encoder.embeddings.word.weight_quantized"]
    restored = table * arrays["encoder.embeddings.word.weight_scale"]
    (before,) = (one for one in graph.graph.initializer if one.name == "encoder.embeddings.word.weight")
    original = onnx.numpy_helper.to_array(before)
    step = np.abs(original).max(axis=1, keepdims=True) / 127
    assert (np.abs(restored - original) <= 0.51 * step).all()
    assert "encoder.embeddings.word.weight" not in arrays
    assert quantized.ByteSize() < quantize_dynamic(graph).ByteSize()


@pytest.mark.parametrize(
    ("flags", "exact"),
    [(("avx2",), False), (("avx2", "avx512_vnni"), True), (("avx2", "avx_vnni"), True), (("asimddp",), True)],
)
def test_a_cpu_without_the_instructions_gets_seven_bits(
    graph: onnx.ModelProto, monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...], exact: bool
) -> None:
    monkeypatch.setattr(quantization, "cpu_flags", lambda: flags)
    assert int8_is_exact() is exact
    weights = [
        onnx.numpy_helper.to_array(one)
        for one in quantize_dynamic(graph).graph.initializer
        if one.name.endswith("weight_quantized")
    ]
    largest = max(int(np.abs(array.astype(np.int32)).max()) for array in weights)
    assert (largest > 64) is exact


def test_with_fixed_scales_a_row_does_not_depend_on_its_batch(
    graph: onnx.ModelProto, rows_of: Callable[..., TokenizedRows]
) -> None:
    session = onnxruntime.InferenceSession(quantize_static(graph, rows_of(ROWS)).SerializeToString())
    ids = np.random.default_rng(1).integers(0, 50, (6, 9))
    mask = (np.arange(9) < np.array([[9], [3], [5], [1], [7], [9]])).astype(np.int64)

    def logits(rows: slice, width: int) -> np.ndarray:
        feed = {"input_ids": ids[rows, :width], "attention_mask": mask[rows, :width]}
        feed["token_type_ids"] = np.zeros_like(feed["input_ids"])
        found: np.ndarray = session.run(None, feed)[0]
        return found

    together = logits(slice(None), 9)
    assert np.abs(together[1:2] - logits(slice(1, 2), 3)).max() < 1e-5
    assert np.abs(together[3:4] - logits(slice(3, 4), 1)).max() < 1e-5


@pytest.mark.parametrize("form", ["portable", "fused"])
def test_pruned_layers_in_8_bits_read_a_mask_with_holes_as_torch_does(
    config_with: Callable[..., EncoderConfig],
    classifier: Callable[..., Classifier],
    rows_of: Callable[..., TokenizedRows],
    form: GraphForm,
) -> None:
    layers = tuple(
        LayerShape(heads=tuple(range(heads)), head_size=4, intermediate_size=neurons)
        for heads, neurons in ((7, 24), (0, 24), (1, 0), (2, 24))
    )
    graph = build_graph(classifier(config_with(layers=layers)), form=form)
    session = onnxruntime.InferenceSession(quantize_static(graph, rows_of(ROWS)).SerializeToString())
    mask = np.array([[0, 1, 0, 1, 1, 0], [0, 0, 0, 1, 1, 1], [1, 1, 1, 0, 0, 0], [0, 0, 0, 0, 0, 0]])
    ids = np.full(mask.shape, 7)
    ids[mask == 1] = [3, 9, 4] * 3
    feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
    logits = session.run(None, feed)[0]
    assert np.isfinite(logits).all()
    assert np.abs(logits[:2] - logits[2]).max() < 1e-5


def test_ranges_hold_what_was_seen_and_padding_counts_for_nothing(
    graph: onnx.ModelProto, rows_of: Callable[..., TokenizedRows]
) -> None:
    rows = rows_of(ROWS)
    ranges = activation_ranges(graph, rows)
    assert set(ranges) == set(linear_layers(graph).values())
    assert all(low <= 0 <= high and high > low for low, high in ranges.values())
    for name, (low, high) in activation_ranges(graph, rows.select([0, 5])).items():
        assert ranges[name][0] <= low + 1e-4 and high - 1e-4 <= ranges[name][1]
