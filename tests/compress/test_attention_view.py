"""Claims about where heads look and what the answer owes to them."""

import numpy as np
import pytest
import torch

from compress.attention_view import (
    describe_gaze,
    find_mixes,
    find_weights,
    head_effects,
    source_effects,
)
from compress.gates import silenced, without_source
from encoder.attention import split_heads
from encoder.batches import Batch
from encoder.config import LayerShape
from tests.compress.conftest import ATTENDING, BLOCKS


@pytest.fixture
def model(classifier, config_with):
    """Four heads in the first layer, two in the second, which lost some."""
    whole = LayerShape(heads=(0, 1, 2, 3), head_size=4, intermediate_size=32)
    pruned = LayerShape(heads=(1, 3), head_size=4, intermediate_size=32)
    return classifier(config_with(layers=(whole, pruned)))


@pytest.fixture
def rows(rows_of):
    return rows_of([5, 9, 1, 7])


def test_weights_sum_to_one_and_make_the_output_of_the_default_path(model, rows) -> None:
    row = rows.select([0])
    batch = Batch.from_rows(row)
    weights = find_weights(model.encoder, row)
    with torch.no_grad():
        states = list(model.encoder.states(batch))
        for layer, state, there in zip(model.encoder.layers, states, weights, strict=False):
            assert there.sum(-1) == pytest.approx(np.ones(there.shape[:2]), abs=1e-5)
            qkv = layer.attention.qkv(state)
            _, _, value = split_heads(qkv, batch.packing, layer.attention.num_attention_heads)
            mixed = (torch.from_numpy(there) @ value[0]).transpose(0, 1).flatten(1)  # [T, H·K]
            expected, _ = layer.attention(state, batch.packing)
            assert torch.allclose(layer.attention.output(mixed), expected, atol=1e-5)


def test_weights_are_those_of_the_row_alone_whatever_it_is_packed_with(model, rows) -> None:
    packed = model.encoder(Batch.from_rows(rows), output_attentions=True).attentions
    for row, length in enumerate(rows.lengths):
        alone = find_weights(model.encoder, rows.select([row]))
        for together, own in zip(packed, alone, strict=True):
            there = together[row].detach().numpy()
            assert there[:, :length, :length] == pytest.approx(own, abs=1e-5)
            assert not there[:, :length, length:].any()  # nobody looks at padding


def test_effect_of_a_head_is_the_logit_less_that_without_it(model, rows) -> None:
    row = rows.select([1])
    effects = head_effects(model, row, 1)
    batch = Batch.from_rows(row)
    with torch.no_grad():
        whole = model(batch)[0, 1]
        for layer, there in enumerate(effects):
            for head, effect in enumerate(there):
                kept = [list(range(len(one))) for one in effects]
                kept[layer].remove(head)
                with silenced(model, "heads", kept):
                    without = model(batch)[0, 1]
                assert effect == pytest.approx(float(whole - without), abs=1e-5)


def test_gaze_of_uniform_and_of_single_minded_heads() -> None:
    uniform = np.full((4, 4), 0.25, dtype=np.float32)
    at_first = np.eye(4, dtype=np.float32)[[0, 0, 0, 0]]
    gaze = describe_gaze(np.stack([uniform, at_first]), [True, False, False, False])
    assert gaze.entropy_bits == pytest.approx([2.0, 0.0])
    assert gaze.distance_tokens == pytest.approx([1.25, 1.5])
    assert gaze.special_share == pytest.approx([0.25, 1.0])


@pytest.mark.parametrize("changes", [ATTENDING, BLOCKS], ids=["full", "blocks"])
def test_mixes_sum_to_one_and_the_effect_of_a_source_is_the_logit_less_that_without_it(
    config_with, classifier, rows_of, changes
) -> None:
    model, row = classifier(config_with(**changes)), rows_of([7])
    mixes, effects = find_mixes(model.encoder, row), source_effects(model, row, 1)
    ends = 2 * model.config.num_hidden_layers
    assert [len(mix) for mix in mixes] == [model.config.num_sources(number) for number in range(ends + 1)]
    assert all(mix.sum() == pytest.approx(1) for mix in mixes)
    assert len(effects) == len(mixes[-1])
    batch = Batch.from_rows(row)
    with torch.inference_mode():
        output = model.encoder(batch, output_residual_weights=True)
        assert mixes[-1] == pytest.approx(output.residual_weights[-1][0].numpy())  # of the first token
        whole = float(model(batch)[0, 1])
        with without_source(model, 2):
            assert effects[2] == pytest.approx(whole - float(model(batch)[0, 1]), abs=1e-6)
