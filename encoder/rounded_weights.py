"""Weights rounded to bf16 once an update, for training in bf16.

Autocast rounds each weight whenever a batch uses it, and widens each gradient, which is computed in bf16, to
float32: passes over all parameters, which a step on short rows feels. Here the rounded weights last from
update to update and the gradient stays as it was computed until AdamW takes it (``encoder.optimizer``). The
numbers are the same: the weights that learn are float32 (Micikevicius et al. 2018, section 3.1).
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from encoder.linear import Linear


@contextmanager
def rounded_weights_(model: nn.Module) -> Iterator[Mapping[Tensor, Tensor]]:
    """Within the context linear layers that train compute with the tensors that it yields, bf16.

    One for each of their weights that trains, as large, with a gradient of its own; whoever changes a weight
    has to round it again. In evaluation mode the weights themselves are used.
    """
    layers = [m for m in model.modules() if isinstance(m, Linear) and m.weight.requires_grad]
    rounded: dict[Tensor, Tensor] = {}
    try:
        for layer in layers:
            layer.rounded = layer.weight.detach().to(torch.bfloat16).requires_grad_()
            rounded[layer.weight] = layer.rounded
        yield rounded
    finally:
        for layer in layers:
            layer.rounded = None
