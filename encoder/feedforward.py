"""The position-wise feed-forward sublayer (Vaswani et al. 2017, section 3.3)."""

from collections.abc import Callable
from functools import partial

import torch.nn.functional as F
from torch import Tensor, nn

from encoder.config import Activation
from encoder.linear import Linear

ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    "gelu": F.gelu,
    "gelu_tanh": partial(F.gelu, approximate="tanh"),
    "relu": F.relu,
    "silu": F.silu,
}


class FeedForward(nn.Module):
    """D → F → activation → D. With F = 0 the result is the output bias."""

    def __init__(self, hidden_size: int, intermediate_size: int, activation: Activation) -> None:
        super().__init__()
        self.intermediate = Linear(hidden_size, intermediate_size)
        self.output = Linear(intermediate_size, hidden_size)
        self.activation = ACTIVATIONS[activation]

    def forward(self, x: Tensor) -> Tensor:
        """x [N, D] → [N, D]."""
        output: Tensor = self.output(self.activation(self.intermediate(x)))
        return output
