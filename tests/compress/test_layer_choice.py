"""Claims about which layers stay."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from compress.importance import mean_loss
from compress.layer_choice import alternate_layers, bottom_layers, important_layers
from compress.removal import keep_layers
from encoder.config import LayerShape


def test_top_layers_go_first():
    assert bottom_layers(4) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("count", "keep", "layers"),
    [
        (12, 6, [1, 3, 5, 7, 9, 11]),
        (12, 4, [2, 5, 8, 11]),
        (6, 4, [0, 2, 3, 5]),
        (3, 3, [0, 1, 2]),
        (12, 1, [11]),
    ],
)
def test_alternate_layers_include_the_last(count, keep, layers):
    assert alternate_layers(count, keep) == layers


def test_layer_that_does_nothing_goes_first(config_with, classifier, rows_of):
    shape = LayerShape(heads=(0, 1), head_size=4, intermediate_size=8)
    model = classifier(config_with(layers=(shape,) * 4, norm="pre"))
    with torch.no_grad():
        for sublayer in (model.encoder.layers[2].attention, model.encoder.layers[2].feed_forward):
            for parameter in sublayer.output.parameters():
                parameter.zero_()
    rows = replace(rows_of([3, 7, 2, 5]), labels=np.array([0, 1, 2, 0]))
    kept, scores = important_layers(model, rows, 3)
    assert scores[2] == pytest.approx(0, abs=1e-6)
    losses = [
        mean_loss(keep_layers(model, [other for other in range(4) if other != one]), rows) for one in range(4)
    ]
    assert kept == [layer for layer in range(4) if layer != losses.index(min(losses))]
    assert len(scores) == 4
