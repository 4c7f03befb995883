"""Dropout that spends little time on drawing numbers (Srivastava et al. 2014)."""

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from encoder.autograd import apply
from encoder.engine import ALL_ON

_LEVELS = 1 << 16


def draw_kept(shape: torch.Size, p: float, *, cheap: bool = True) -> tuple[Tensor, float]:
    """Which elements are kept, int16 0 or 1 of ``shape``, each dropped with probability ``p``; and the scale.

    On the CPU torch's own dropout draws a double per element from a serial generator, a tenth of a training
    step; here four elements share one 64-bit draw, so p is rounded to a multiple of 2⁻¹⁶ and the scale
    1/(1−p) with it: the expectation stays exact. The draws are those of a generator that takes half as long
    as torch's, from which it gets its seed. Not so if not ``cheap``.
    """
    if not cheap:
        return torch.empty(shape, dtype=torch.int16).bernoulli_(1 - p), 1 / (1 - p)
    count = shape.numel()
    dropped = round(p * _LEVELS)
    seed = int(torch.empty((), dtype=torch.int64).random_())
    draws = np.random.SFC64(seed).random_raw((count + 3) // 4)
    kept = torch.from_numpy(draws.view(np.int16))[:count].view(shape)  # uniform on [−2¹⁵, 2¹⁵)
    return kept.ge_(dropped - _LEVELS // 2), _LEVELS / (_LEVELS - dropped)


class _Dropout(torch.autograd.Function):
    """Keeps a byte an element for the backward pass."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, p: float) -> Tensor:
        kept, ctx.scale = draw_kept(x.shape, p)
        ctx.save_for_backward(kept.to(torch.uint8))
        return (x * kept.to(x.dtype)).mul_(ctx.scale)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (kept,) = ctx.saved_tensors
        return (grads[0] * kept.to(grads[0].dtype)).mul_(ctx.scale), None


def dropout(x: Tensor, p: float, *, cheap: bool = True) -> Tensor:
    """Zero each element of ``x`` with probability ``p``, scale the others by 1/(1−p).

    On the CPU by ``draw_kept``; torch's own elsewhere, where it is fused, and if not ``cheap``.
    """
    if p == 0.0:
        return x
    if not cheap or x.device.type != "cpu":
        return F.dropout(x, p)
    return apply(_Dropout, x, p)


class Dropout(nn.Module):
    """``dropout`` with probability ``p`` in training mode, the identity otherwise."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p
        self.engine = ALL_ON

    def forward(self, x: Tensor) -> Tensor:
        """x of any shape → the same shape."""
        return dropout(x, self.p, cheap=self.engine.cheap_dropout) if self.training else x
