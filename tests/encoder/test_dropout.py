import pytest
import torch

from encoder.dropout import Dropout, dropout


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_share_dropped_and_expectation(p: float, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    y = dropout(torch.ones(1001, 333, dtype=dtype), p).float()
    n = y.numel()
    assert abs(float((y == 0).float().mean()) - p) < 5 * (p * (1 - p) / n) ** 0.5
    assert abs(float(y.mean()) - 1) < 5 * (p / (1 - p) / n) ** 0.5 + (2**-8 if dtype == torch.bfloat16 else 0)


def test_each_of_the_four_elements_of_a_draw_is_independent() -> None:
    torch.manual_seed(0)
    dropped = (dropout(torch.ones(100_000, 4), 0.3) == 0).double()
    correlation = torch.corrcoef(dropped.T) - torch.eye(4)
    assert correlation.abs().max() < 0.02


def test_the_gradient_is_that_of_the_elements_kept() -> None:
    torch.manual_seed(0)
    x = torch.randn(64, 5, requires_grad=True)
    y = dropout(x, 0.25)
    y.sum().backward()
    assert x.grad is not None
    assert torch.allclose(x.grad, torch.where(y == 0, 0.0, 1 / 0.75))


def test_evaluation_mode_is_the_identity_and_draws_nothing() -> None:
    before = torch.get_rng_state()
    x = torch.randn(3, 3, generator=torch.Generator().manual_seed(0))
    assert Dropout(0.5).eval()(x) is x
    assert torch.equal(torch.get_rng_state(), before)


def test_the_seed_decides() -> None:
    x = torch.ones(50, 50)
    torch.manual_seed(1)
    first = dropout(x, 0.4)
    torch.manual_seed(1)
    assert torch.equal(dropout(x, 0.4), first)
