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
    """D → F → activation → D. With F = 0 the result is the output bias, or zero.

    Gated, ``intermediate`` has twice the rows, those of A above those of B, and the result is
    W·(activation(A·x) ⊙ B·x) (Shazeer 2020, equations 5 and 6). A neuron is a row of each, and a column of W.
    """

    def __init__(
        self,
        hidden_size: int,
        intermediate_size: int,
        activation: Activation,
        *,
        gated: bool = False,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.gated = gated
        self.intermediate = Linear(hidden_size, intermediate_size * (2 if gated else 1), bias=bias)
        self.output = Linear(intermediate_size, hidden_size, bias=bias)
        self.activation = ACTIVATIONS[activation]

    def forward(self, x: Tensor) -> Tensor:
        """x [N, D] → [N, D]."""
        inner = self.intermediate(x)  # [N, F], gated [N, 2·F]
        if self.gated:
            inner, gate = inner.chunk(2, dim=-1)
            found = self.activation(inner) * gate
        else:
            found = self.activation(inner)
        output: Tensor = self.output(found)
        return output
