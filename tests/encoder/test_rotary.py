import pytest
import torch

from encoder.packing import Packing
from encoder.rotary import rotate, rotation

H, K, THETA = 3, 8, 100.0


def scores(query: torch.Tensor, key: torch.Tensor, positions: tuple[int, int]) -> torch.Tensor:
    """The product, of each head, of a query and a key [H·K] at these positions."""
    turns = rotation(torch.tensor(positions), K, THETA)
    turned = rotate(torch.stack([query, key]), turns, H, 1).view(2, H, K)
    return (turned[0] * turned[1]).sum(-1)


def test_a_score_depends_on_the_distance_alone() -> None:
    query, key = torch.randn(2, H * K).unbind(0)
    assert torch.allclose(scores(query, key, (2, 7)), scores(query, key, (30, 35)), atol=1e-5)
    assert not torch.allclose(scores(query, key, (2, 7)), scores(query, key, (2, 8)), atol=1e-3)


def test_position_zero_turns_by_nothing_and_lengths_stay() -> None:
    x = torch.randn(2, H * K)
    turned = rotate(x, rotation(torch.tensor([0, 9]), K, THETA), H, 1)
    assert torch.equal(turned[0], x[0])
    assert torch.allclose(turned.norm(dim=1), x.norm(dim=1))


def test_values_stay_and_the_gradient_is_turned_back() -> None:
    x = torch.randn(5, 3 * H * K, dtype=torch.float64, requires_grad=True)
    turns = tuple(part.double() for part in rotation(torch.arange(5), K, THETA))
    turned = rotate(x, turns, H, 2)
    assert torch.equal(turned[:, 2 * H * K :], x[:, 2 * H * K :])
    (gradient,) = torch.autograd.grad(turned, x, turned)
    assert torch.allclose(gradient, x, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_dtype_stays(dtype: torch.dtype) -> None:
    turns = Packing.from_lengths(torch.tensor([2, 3])).turns(K, THETA)
    assert rotate(torch.randn(5, 2 * H * K).to(dtype), turns, H, 1).dtype == dtype


def test_positions_begin_anew_in_each_row_and_turns_are_computed_once() -> None:
    packing = Packing.from_lengths(torch.tensor([2, 3]))
    cos, _ = packing.turns(K, THETA)
    assert torch.equal(cos[:2], cos[2:4])
    assert packing.turns(K, THETA)[0] is cos
