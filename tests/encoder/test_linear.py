import torch

from encoder.linear import Linear


def test_width_zero_is_allowed_and_gives_the_bias() -> None:
    layer = Linear(0, 3)
    torch.nn.init.ones_(layer.bias)
    assert torch.equal(layer(torch.zeros(2, 0)), torch.ones(2, 3))


def test_building_draws_no_random_numbers() -> None:
    before = torch.get_rng_state()
    Linear(5, 5)
    assert torch.equal(torch.get_rng_state(), before)
