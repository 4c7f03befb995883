"""Functions with a gradient of their own, called with types."""

from typing import Any

import torch
from torch import Tensor


def apply(function: type[torch.autograd.Function], *arguments: Any) -> Tensor:
    """``function.apply``, which torch has without types, of a function with one output."""
    result: Tensor = function.apply(*arguments)
    return result
