import torch

from encoder.feedforward import ACTIVATIONS, FeedForward


def test_feed_forward_equals_the_formula() -> None:
    layer = FeedForward(4, 6, "gelu")
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter)
    x = torch.randn(5, 4)
    inner = torch.nn.functional.gelu(x @ layer.intermediate.weight.T + layer.intermediate.bias)
    assert torch.allclose(layer(x), inner @ layer.output.weight.T + layer.output.bias, atol=1e-6)


def test_without_neurons_feed_forward_is_its_output_bias() -> None:
    layer = FeedForward(4, 0, "relu")
    torch.nn.init.normal_(layer.output.bias)
    assert torch.equal(layer(torch.randn(3, 4)), layer.output.bias.expand(3, 4))


def test_the_two_gelus_differ_as_their_definitions_do() -> None:
    x = torch.linspace(-3, 3, 101)
    exact = 0.5 * x * (1 + torch.erf(x / 2**0.5))
    assert torch.allclose(ACTIVATIONS["gelu"](x), exact, atol=1e-6)
    difference = (ACTIVATIONS["gelu_tanh"](x) - exact).abs().max()
    assert 1e-5 < difference < 1e-3
