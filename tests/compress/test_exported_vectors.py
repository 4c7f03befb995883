"""A classifier's graph, cut to give vectors, gives those of the encoder, whatever its kind."""

import numpy as np
import onnxruntime
import pytest

from compress.exported_vectors import check_choice, cut_to_vectors
from compress.onnx_graph import build_graph, build_vector_graph, graph_inputs
from encoder.errors import ConfigError
from encoder.vector_choice import choose
from tests.compress.conftest import VARIANTS


@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS.keys())
@pytest.mark.parametrize(("layers", "pooling"), [("0", "mean"), ("1", "max"), ("0:2", "mean"), ("-1", "cls")])
def test_cut_graph_gives_the_vectors_of_a_graph_made_for_them(
    config_with, classifier, changes, layers, pooling
) -> None:
    model = classifier(config_with(**changes))
    choice = choose(layers, pooling, model.config.num_hidden_layers)
    ids = np.random.default_rng(0).integers(0, 50, (3, 9))
    mask = (np.arange(9) < [[9], [4], [0]]).astype(np.int64)
    feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": ids % 2}
    feed = {name: feed[name] for name in graph_inputs(model.config)}
    found, expected = (
        onnxruntime.InferenceSession(graph.SerializeToString()).run(None, feed)[0]
        for graph in (
            cut_to_vectors(build_graph(model), model.config, choice),
            build_vector_graph(model, choice, form="portable"),
        )
    )
    rows = slice(2) if choice.pooling == "cls" else slice(3)  # a classifier gives the last one no zeros
    assert found[rows] == pytest.approx(expected[rows], abs=1e-5)
    assert np.ptp(expected) > 0.05


def test_only_a_classifier_of_first_tokens_has_no_others_in_its_last_layer(config_with) -> None:
    choice = choose("-1", "mean", 4)
    with pytest.raises(ConfigError, match="computes only the first token in its last layer, 4"):
        check_choice(choice, config_with(**VARIANTS["modern"]))
    check_choice(choice, config_with(**VARIANTS["modern, mean"]))
