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


LENGTHS = [[5, 2, 9], [4, 4], [1], [3, 0, 2], [70, 40, 3, 3, 1, 33, 2]]


def by_rectangle(qkv: torch.Tensor, packing: Packing, dropped: torch.Tensor | None = None) -> torch.Tensor:
    """The formula on padded rows, by autograd."""
    query, key, value = attention.split_heads(qkv, packing, 2)
    weights = attention.attention_weights(query, key, packing.key_mask)
    return packing.unpad((weights @ value).transpose(1, 2)).flatten(1)


def test_attention_equals_the_formula() -> None:
    q, k, v = torch.randn(3, 2, 4, 5, 6).unbind(0)  # [B, H, T, K]
    expected = (q @ k.transpose(-2, -1) / math.sqrt(6)).softmax(-1) @ v
    qkv = torch.stack([q, k, v]).permute(1, 3, 0, 2, 4).reshape(10, 72)  # [B·T, 3·H·K]
    mixed = attention.mix(qkv, Packing.from_lengths(torch.tensor([5, 5])), 4, 0.0)
    assert torch.allclose(mixed.view(2, 5, 4, 6).transpose(1, 2), expected, atol=1e-6)


@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("kept", [0, 1 << 30])
def test_blocks_and_their_gradient_equal_padded_rows(lengths: list[int], kept: int, monkeypatch) -> None:
    monkeypatch.setattr(attention, "MAX_KEPT_WEIGHTS", kept)
    packing = Packing.from_lengths(torch.tensor(lengths))
    qkv = torch.randn(packing.num_tokens, 3 * 2 * 4, dtype=torch.float64, requires_grad=True)
    ours, expected = attention.mix(qkv, packing, 2, 0.0), by_rectangle(qkv, packing)
    assert torch.allclose(ours, expected, atol=1e-6)
    direction = torch.randn_like(ours)
    (found,) = torch.autograd.grad(ours, qkv, direction)
    (wanted,) = torch.autograd.grad(expected, qkv, direction)
    assert torch.allclose(found, wanted, atol=1e-5)


@pytest.mark.parametrize("kept", [0, 1 << 30])
def test_the_gradient_under_dropout_is_that_of_the_weights_kept(kept: int, monkeypatch) -> None:
    monkeypatch.setattr(attention, "MAX_KEPT_WEIGHTS", kept)
    packing = Packing.from_lengths(torch.tensor([4, 2, 5]))
    qkv = torch.randn(11, 3 * 2 * 3, requires_grad=True)

    def run(values: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(3)
        return attention.mix(values, packing, 2, 0.4)

    direction = torch.randn(11, 6)
    (found,) = torch.autograd.grad(run(qkv), qkv, direction)
    step = 1e-2
    for place in ((0, 0), (3, 7), (5, 17), (10, 4)):
        shift = torch.zeros_like(qkv)
        shift[place] = step
        with torch.no_grad():
            slope = ((run(qkv + shift) - run(qkv - shift)) * direction).sum() / (2 * step)
        assert float(found[place]) == pytest.approx(float(slope), abs=2e-3)


def test_dropout_keeps_the_expectation() -> None:
    torch.manual_seed(0)
    packing = Packing.from_lengths(torch.tensor([6, 3]))
    qkv = torch.randn(9, 3 * 2 * 4)
    mean = torch.stack([attention.mix(qkv, packing, 2, 0.3) for _ in range(4000)]).mean(0)
    assert torch.allclose(mean, attention.mix(qkv, packing, 2, 0.0), atol=0.05)


def test_in_bf16_attention_and_its_gradient_stay_close() -> None:
    packing = Packing.from_lengths(torch.tensor([40, 7, 33, 1]))
    qkv = torch.randn(81, 3 * 2 * 16)
    found = {}
    for dtype in (torch.float32, torch.bfloat16):
        values = qkv.to(dtype, copy=True).requires_grad_()
        mixed = attention.mix(values, packing, 2, 0.0)
        mixed.float().square().sum().backward()
        assert values.grad is not None
        found[dtype] = (mixed.float(), values.grad.float())
    for exact, rounded in zip(*found.values(), strict=True):
        assert (rounded - exact).abs().max() < 0.03 * exact.abs().max()


@pytest.mark.parametrize("lengths", LENGTHS)
def test_the_first_token_alone_gets_what_it_gets_among_all(lengths: list[int]) -> None:
    layer = attention.SelfAttention(8, LayerShape(heads=(0, 1), head_size=4, intermediate_size=1), 0.0)
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    packing = Packing.from_lengths(torch.tensor(lengths))
    x = torch.randn(packing.num_tokens, 8)
    alone, _ = layer(x, packing, first_only=True)
    among, _ = layer(x, packing)
    exists = packing.lengths > 0
    assert torch.allclose(alone[exists], packing.first(among)[exists], atol=1e-6)
    assert alone.isfinite().all()


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
