from collections.abc import Callable

import numpy as np
import onnx
import onnxruntime
import pytest

from compress.half_precision import to_fp16
from compress.onnx_graph import GraphForm, build_graph, graph_inputs
from encoder.config import EncoderConfig
from encoder.model import Classifier
from tests.compress.conftest import VARIANTS

MASKS = {
    "no padding": [[1] * 6, [1] * 6],
    "much padding": [[1, 0, 0, 0, 0, 0], [1, 1, 0, 0, 0, 0]],
    "left padding and holes": [[0, 0, 1, 0, 1, 1], [0, 1, 0, 1, 0, 1]],
    "a row that is all padding": [[1, 1, 1, 1, 1, 1], [0, 0, 0, 0, 0, 0]],
}


@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS.keys())
def test_fp16_of_every_variant_is_close(
    config_with: Callable[..., EncoderConfig],
    classifier: Callable[..., Classifier],
    changes: dict[str, object],
) -> None:
    model = classifier(config_with(**changes))
    graph = build_graph(model)
    ids = np.random.default_rng(0).integers(0, 50, (2, 30))
    mask = (np.arange(30) < [[30], [4]]).astype(np.int64)
    feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": ids % 2}
    feed = {name: feed[name] for name in graph_inputs(model.config)}
    expected, found = (
        onnxruntime.InferenceSession(one.SerializeToString()).run(None, feed)[0]
        for one in (graph, to_fp16(graph))
    )
    assert np.abs(found - expected).max() < 0.05


@pytest.mark.parametrize("form", ["portable", "fused"])
@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS.keys())
def test_fp16_is_close_and_finite_whatever_the_mask(
    config_with: Callable[..., EncoderConfig],
    classifier: Callable[..., Classifier],
    form: GraphForm,
    mask: list[list[int]],
) -> None:
    graph = build_graph(classifier(config_with()), form=form)
    half = to_fp16(graph)
    ids = np.random.default_rng(0).integers(0, 50, (2, 6))
    feed = {"input_ids": ids, "attention_mask": np.array(mask), "token_type_ids": ids % 2}
    expected, found = (
        onnxruntime.InferenceSession(one.SerializeToString()).run(None, feed)[0] for one in (graph, half)
    )
    assert found.dtype == np.float32
    assert np.isfinite(found).all()
    assert np.abs(found - expected).max() < 0.02


def test_weights_take_half_the_bytes(
    config_with: Callable[..., EncoderConfig], classifier: Callable[..., Classifier]
) -> None:
    graph = build_graph(classifier(config_with()))
    half = to_fp16(graph)
    types = {one.data_type for one in half.graph.initializer}
    assert onnx.TensorProto.FLOAT not in types
    weights, halves = (sum(len(i.raw_data) for i in one.graph.initializer) for one in (graph, half))
    assert halves < 0.55 * weights
