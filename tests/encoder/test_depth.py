"""Claims about what is measured with depth."""

import math

import numpy as np
import pytest
import torch

from encoder.batches import Batch
from encoder.depth import effective_rank, gradient_norms, measure_depth
from encoder.model import Encoder, initialise_


def rank_of(matrix):
    return effective_rank(matrix.T @ matrix)


@pytest.mark.parametrize("rank", [1, 3, 8])
def test_equal_singular_values_fill_as_many_dimensions_as_there_are(rank):
    left, _ = torch.linalg.qr(torch.randn(50, rank, dtype=torch.float64))
    right, _ = torch.linalg.qr(torch.randn(8, rank, dtype=torch.float64))
    assert rank_of(5 * left @ right.T) == pytest.approx(rank, rel=1e-4)


def test_planted_singular_values_give_their_entropy():
    values = torch.tensor([8.0, 4.0, 2.0, 2.0], dtype=torch.float64)
    left, _ = torch.linalg.qr(torch.randn(30, 4, dtype=torch.float64))
    right, _ = torch.linalg.qr(torch.randn(6, 4, dtype=torch.float64))
    shares = values / values.sum()
    expected = math.exp(-(shares * shares.log()).sum())
    assert rank_of(left @ torch.diag(values) @ right.T) == pytest.approx(expected, rel=1e-4)
    assert expected < 4


def test_nothing_has_no_rank():
    assert rank_of(torch.zeros(5, 3)) == 0.0


def make_encoder(config):
    encoder = Encoder(config)
    initialise_(encoder, config, 0)
    return encoder.eval()


VARIANTS = [
    {},
    {"norm": "pre"},
    {"norm": "pre", "residual": "attention"},
    {"norm": "pre", "residual": "block_attention", "residual_block_size": 4},
]


def root(x):
    return x.double().square().mean().sqrt().item()


@pytest.mark.parametrize("changes", VARIANTS, ids=str)
def test_sizes_are_those_of_a_pass_by_hand(make_config, make_rows, changes):
    encoder, rows = make_encoder(make_config(**changes)), make_rows([9, 14, 20, 6])
    parts = [Batch.from_rows(rows.select(index)) for index in ([0, 1], [2], [3])]
    found = measure_depth(encoder, parts)
    batch = Batch.from_rows(rows)
    with torch.no_grad():
        stream = encoder.embed(batch)
        for number, layer in enumerate(encoder.layers):
            read = layer.attention_residual(stream)
            made = layer.attention(layer.attention_input(stream), batch.packing)[0]
            assert found.streams[number] == pytest.approx(root(read), rel=1e-4)
            assert found.attention[number].read == pytest.approx(root(read), rel=1e-4)
            assert found.attention[number].made == pytest.approx(root(made), rel=1e-4)
            assert found.effective_ranks[number] == pytest.approx(rank_of(read.double()), rel=1e-3)
            stream = layer.after_attention(stream, made)
            made = layer.feed_forward(layer.feed_forward_input(stream))
            assert found.feed_forward[number].read == pytest.approx(
                root(layer.feed_forward_residual(stream)), rel=1e-4
            )
            assert found.feed_forward[number].made == pytest.approx(root(made), rel=1e-4)
            stream = layer.after_feed_forward(stream, made)
        assert found.streams[-1] == pytest.approx(root(encoder.final_residual(stream)), rel=1e-4)
    assert found.tokens == 49
    assert not any(module._forward_hooks for module in encoder.modules())


def test_a_post_norm_stream_keeps_its_size_and_a_pre_norm_sum_grows(make_config, make_rows):
    rows = make_rows([12] * 8)
    shapes = {"layers": make_config().layers * 4}  # 12 of them
    post, pre, mean = (
        measure_depth(make_encoder(make_config(**shapes | changes)), [Batch.from_rows(rows)])
        for changes in VARIANTS[:3]
    )
    assert post.streams[-1] == pytest.approx(post.streams[0], rel=0.01)
    assert pre.streams[-1] > 1.5 * pre.streams[0]
    adds = [one.made / one.read for one in pre.feed_forward]
    assert adds[-1] < 0.8 * adds[0]
    assert mean.streams[-1] < pre.streams[-1]


@pytest.mark.parametrize("positions", ["learned", "rotary"])
def test_gradients_are_counted_by_layer(make_config, make_rows, positions):
    encoder, batch = (
        make_encoder(make_config(position_embedding=positions)),
        Batch.from_rows(make_rows([9, 14])),
    )
    measure_depth(encoder, [batch])
    output = encoder(batch).last_hidden_state
    output.square().sum().backward()
    found = gradient_norms(encoder, encoder)
    assert len(found) == 4
    by_hand = torch.cat([p.grad.flatten() for p in encoder.layers[1].parameters()]).norm()
    assert found[2] == pytest.approx(by_hand.item(), rel=1e-5)
    whole = torch.cat([p.grad.flatten() for p in encoder.parameters()]).norm()
    assert np.linalg.norm(found) == pytest.approx(whole.item(), rel=1e-5)
