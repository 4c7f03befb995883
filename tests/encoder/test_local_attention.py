import pytest
import torch

from encoder import local_attention
from encoder.attention import mix
from encoder.engine import Engine
from encoder.local_attention import is_worth_it, mix_tiles
from encoder.packing import Packing

H, K = 2, 4
LENGTHS = [[300], [5, 200, 1, 0, 64, 3], [64, 64], [1], [2, 0, 1]]


@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("window", [1, 3, 70])
def test_tiles_and_their_gradient_equal_a_masked_rectangle(lengths: list[int], window: int) -> None:
    packing = Packing.from_lengths(torch.tensor(lengths))
    qkv = torch.randn(packing.num_tokens, 3 * H * K, dtype=torch.float64, requires_grad=True)
    expected = mix(qkv, packing, H, 0.0, Engine(blocks=False), window)
    found = mix_tiles(qkv, packing, H, window, 0.0)
    assert torch.allclose(found, expected, atol=1e-6)
    into = torch.randn_like(found)
    (ours,) = torch.autograd.grad(found, qkv, into)
    (theirs,) = torch.autograd.grad(expected, qkv, into)
    assert torch.allclose(ours, theirs, atol=1e-6)


@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("window", [1, 3, 70])
def test_blocks_and_their_gradient_equal_a_masked_rectangle(
    lengths: list[int], window: int, monkeypatch
) -> None:
    monkeypatch.setattr(local_attention, "WORTH_IT", 1 << 30)  # never
    packing = Packing.from_lengths(torch.tensor(lengths))
    qkv = torch.randn(packing.num_tokens, 3 * H * K, dtype=torch.float64, requires_grad=True)
    expected = mix(qkv, packing, H, 0.0, Engine(blocks=False), window)
    found = mix(qkv, packing, H, 0.0, Engine(), window)
    assert torch.allclose(found, expected, atol=1e-6)
    into = torch.randn_like(found)
    (ours,) = torch.autograd.grad(found, qkv, into)
    (theirs,) = torch.autograd.grad(expected, qkv, into)
    assert torch.allclose(ours, theirs, atol=1e-5)


def test_tiles_are_for_long_rows() -> None:
    assert is_worth_it(Packing.from_lengths(torch.tensor([512, 400])), 64)
    assert not is_worth_it(Packing.from_lengths(torch.tensor([128] * 50)), 64)
    assert not is_worth_it(Packing.from_lengths(torch.tensor([30] * 50 + [200])), 64)
    assert not is_worth_it(Packing.from_lengths(torch.tensor([], dtype=torch.int64)), 64)


def test_in_bf16_tiles_stay_close() -> None:
    packing = Packing.from_lengths(torch.tensor([200, 7]))
    qkv = torch.randn(207, 3 * H * 16)
    exact, rounded = (mix_tiles(one, packing, H, 5, 0.0).float() for one in (qkv, qkv.bfloat16()))
    assert (rounded - exact).abs().max() < 0.03 * exact.abs().max()
