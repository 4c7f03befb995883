import math

import pytest
import torch

import encoder.attention as attention
from encoder.config import LayerShape
from encoder.packing import Packing


def test_no_token_attends_outside_its_row() -> None:
    torch.manual_seed(0)
    layer = attention.SelfAttention(8, LayerShape(heads=(0, 1), head_size=4, intermediate_size=1), 0.0)
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    x = torch.randn(7, 8)
    together, _ = layer(x, Packing.from_lengths(torch.tensor([3, 4])))
    alone = [layer(part, Packing.from_lengths(torch.tensor([len(part)])))[0] for part in (x[:3], x[3:])]
    assert torch.allclose(together, torch.cat(alone), atol=1e-6)


def test_attention_equals_the_formula() -> None:
    q, k, v = torch.randn(3, 2, 4, 5, 6).unbind(0)  # [B, H, T, K]
    expected = (q @ k.transpose(-2, -1) / math.sqrt(6)).softmax(-1) @ v
    assert torch.allclose(attention.mix(q, k, v, None, 0.0), expected, atol=1e-6)
    assert torch.allclose(attention._mix(q, k, v, None, 0.0), expected, atol=1e-6)


def test_both_ways_to_mix_agree_under_a_mask() -> None:
    q, k, v = torch.randn(3, 2, 4, 5, 6).unbind(0)
    mask = Packing.from_lengths(torch.tensor([5, 2])).key_mask
    assert torch.allclose(attention.mix(q, k, v, mask, 0.0), attention._mix(q, k, v, mask, 0.0), atol=1e-6)


def test_recomputed_weights_give_the_same_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    def gradient() -> torch.Tensor:
        torch.manual_seed(3)
        x = torch.randn(3, 2, 2, 9, 4, requires_grad=True)
        q, k, v = x.unbind(0)
        attention.mix(q, k, v, None, 0.3).square().sum().backward()
        assert x.grad is not None
        return x.grad

    kept = gradient()
    monkeypatch.setattr(attention, "MAX_KEPT_WEIGHTS", 0)
    assert torch.equal(gradient(), kept)


@pytest.mark.parametrize("lengths", [[4, 2], [3, 3], [0, 2]])
def test_without_heads_attention_is_its_output_bias(lengths: list[int]) -> None:
    layer = attention.SelfAttention(8, LayerShape(heads=(), head_size=4, intermediate_size=1), 0.1)
    torch.nn.init.normal_(layer.output.bias)
    packing = Packing.from_lengths(torch.tensor(lengths))
    x = torch.randn(packing.num_tokens, 8)
    out, weights = layer(x, packing, need_weights=True)
    assert torch.equal(out, layer.output.bias.expand(packing.num_tokens, 8))
    assert weights is not None and weights.shape[1] == 0


def test_weights_sum_to_one_over_the_tokens_that_exist() -> None:
    layer = attention.SelfAttention(8, LayerShape(heads=(0, 1), head_size=4, intermediate_size=1), 0.0)
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter)
    _, weights = layer(torch.randn(5, 8), Packing.from_lengths(torch.tensor([2, 3])), need_weights=True)
    assert weights is not None
    assert torch.allclose(weights.sum(-1), torch.ones(2, 2, 3), atol=1e-6)
    assert weights[0, :, :, 2].abs().max() == 0


def test_rows_mixed_in_parts_equal_rows_mixed_together(monkeypatch: pytest.MonkeyPatch) -> None:
    layer = attention.SelfAttention(8, LayerShape(heads=(0, 1), head_size=4, intermediate_size=1), 0.0)
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    lengths = torch.tensor([30, 20, 9, 9, 5, 4, 3, 2, 2, 1, 1, 0, 1])
    x = torch.randn(int(lengths.sum()), 8)
    in_parts = Packing.from_lengths(lengths)
    assert len(in_parts.parts) == 2
    expected, weights = layer(x, in_parts, need_weights=True)
    monkeypatch.setattr("encoder.packing.ROWS_PER_PART", 100)
    together = Packing.from_lengths(lengths)
    assert len(together.parts) == 1
    assert torch.allclose(layer(x, together)[0], expected, atol=1e-6)
    assert weights is not None and weights.shape == (13, 2, 30, 30)
