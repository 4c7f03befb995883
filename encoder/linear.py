"""A linear layer that leaves its initialisation to whoever builds the model."""

import torch.nn.functional as F
from torch import Tensor, nn


class Linear(nn.Linear):
    """``torch.nn.Linear`` without an initialisation of its own; widths of 0 are allowed.

    A model is either loaded or initialised as a whole (``encoder.model.initialise_``); drawing numbers that
    are then overwritten would only cost time. ``rounded``: the weight in bf16, while it is trained so
    (``encoder.rounded_weights``).
    """

    rounded: Tensor | None = None

    def reset_parameters(self) -> None:
        """Nothing: see the class."""

    def forward(self, x: Tensor, outputs: slice | None = None) -> Tensor:
        """x [..., in] → [..., out]; of the outputs only ``outputs``."""
        weight = self.rounded if self.training and self.rounded is not None else self.weight
        if outputs is None:
            return F.linear(x, weight, self.bias)
        return F.linear(x, weight[outputs], None if self.bias is None else self.bias[outputs])
