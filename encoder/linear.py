"""A linear layer that leaves its initialisation to whoever builds the model."""

import torch.nn.functional as F
from torch import Tensor, nn


class Linear(nn.Linear):
    """``torch.nn.Linear`` without an initialisation of its own; widths of 0 are allowed.

    A model is either loaded or initialised as a whole (``encoder.model.initialise_``); drawing numbers that
    are then overwritten would only cost time.
    """

    def reset_parameters(self) -> None:
        """Nothing: see the class."""

    def forward(self, x: Tensor, outputs: slice = slice(None)) -> Tensor:
        """x [..., in] → [..., out]; of the outputs only ``outputs``."""
        return F.linear(x, self.weight[outputs], self.bias[outputs])
