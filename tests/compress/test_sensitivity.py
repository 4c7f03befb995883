from collections.abc import Callable, Collection

import numpy as np
import onnx
import pytest
import torch

from compress.onnx_graph import build_graph
from compress.quantization import quantize_dynamic
from compress.sensitivity import PartEffect, keep_worst, list_parts, rank_parts, run_graph
from encoder.config import EncoderConfig
from encoder.model import Classifier
from encoder.prediction import predict_logits
from encoder.rows import TokenizedRows

PARTS = (
    *("encoder.layers.0.attention", "encoder.layers.0.feed_forward"),
    *("encoder.layers.1.attention", "encoder.layers.1.feed_forward", "classifier"),
)


def test_a_graph_has_the_logits_of_torch_row_by_row(
    config_with: Callable[..., EncoderConfig],
    classifier: Callable[..., Classifier],
    rows_of: Callable[..., TokenizedRows],
) -> None:
    model, rows = classifier(config_with()), rows_of([3, 9, 1, 4, 40, 2] * 5)
    assert np.abs(run_graph(build_graph(model), rows) - predict_logits(model, rows)).max() < 1e-5


def test_the_part_that_8_bits_ruin_comes_first(
    config_with: Callable[..., EncoderConfig],
    classifier: Callable[..., Classifier],
    rows_of: Callable[..., TokenizedRows],
) -> None:
    model = classifier(config_with())
    with torch.no_grad():  # one weight of an output dwarfs the others, which all become 0
        model.encoder.layers[1].feed_forward.output.weight[:, 0] = 60.0
    graph = build_graph(model, form="fused")
    assert list_parts(graph) == PARTS
    assert list_parts(graph, embeddings=True) == ("encoder.embeddings", *PARTS)
    ranking = rank_parts(graph, lambda kept: quantize_dynamic(graph, keep_float=kept), rows_of([9] * 12))
    assert ranking[0].name == "encoder.layers.1.feed_forward"
    assert {one.name for one in ranking} == set(PARTS)
    effects = [one.effect for one in ranking]
    assert effects == sorted(effects, reverse=True)
    assert 0 <= ranking[0].labels_changed <= 1


@pytest.mark.parametrize("needed", range(7))
def test_the_fewest_of_the_worst_parts_are_kept(needed: int) -> None:
    ranking = [PartEffect(f"part {number}", 1.0 / (1 + number), 0.0) for number in range(6)]
    tried = []

    def quantize(kept: Collection[str]) -> onnx.ModelProto:
        tried.append(len(kept))
        return onnx.ModelProto(doc_string=str(len(kept)))

    found = keep_worst(ranking, quantize, lambda graph: int(graph.doc_string) >= needed)
    assert found is not None
    graph, kept = found
    assert kept == tuple(one.name for one in ranking[:needed])
    assert graph.doc_string == str(needed)
    assert len(tried) == len(set(tried))


def test_no_graph_that_is_good_is_none() -> None:
    ranking = [PartEffect("part", 1.0, 0.0)]
    assert keep_worst(ranking, lambda kept: onnx.ModelProto(), lambda graph: False) is None
