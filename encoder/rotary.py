"""Rotary positions: queries and keys turned by angles that grow with the position (Su et al. 2021, RoFormer).

The product of a query and a key then depends on how far apart they stand, and no table is added to the
embeddings.
"""

from typing import Any

import torch
from torch import Tensor

from encoder.autograd import apply

Rotation = tuple[Tensor, Tensor]  # cosines and sines, float32 [N, K/2] each


def rotation(positions: Tensor, head_size: int, theta: float) -> Rotation:
    """The turns of tokens at ``positions`` int64 [N]: pair j of a head is turned by position · θ^(−2j/K).

    Equation 15 of the paper; pair j is numbers j and j + K/2 of a head, as checkpoints have it, where the
    paper has neighbours.
    """
    steps = torch.arange(0, head_size, 2, device=positions.device).float() / head_size
    angles = positions[:, None].float() * (1.0 / theta**steps)  # [N, K/2]
    return angles.cos(), angles.sin()


def rotate(projected: Tensor, turns: Rotation, num_heads: int, num_turned: int) -> Tensor:
    """Turn the first ``num_turned`` of the parts of ``projected`` [N, parts·H·K]; the others stay.

    Of queries, keys and values the first two are turned; of keys and values the first. The result has the
    dtype of ``projected``; it is computed in float32.
    """
    return apply(_Rotate, projected, *turns, num_heads, num_turned)


class _Rotate(torch.autograd.Function):
    """A rotation keeps nothing but its angles: the gradient is turned back."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, cos: Tensor, sin: Tensor, num_heads: int, num_turned: int) -> Tensor:
        ctx.save_for_backward(cos, sin)
        ctx.sizes = (num_heads, num_turned)
        return _turned(x, cos, sin, num_heads, num_turned)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None, None, None]:
        cos, sin = ctx.saved_tensors
        return _turned(grads[0], cos, -sin, *ctx.sizes), None, None, None, None


def _turned(x: Tensor, cos: Tensor, sin: Tensor, num_heads: int, num_turned: int) -> Tensor:
    half = cos.shape[1]
    shape = (len(x), x.shape[1] // (2 * num_heads * half), num_heads, 2, half)
    turned = x.clone()
    parts, into = (one.view(shape)[:, :num_turned] for one in (x, turned))  # [N, parts, H, 2, K/2]
    low, high = parts[..., 0, :].float(), parts[..., 1, :].float()
    cos, sin = cos[:, None, None], sin[:, None, None]
    into[..., 0, :] = low * cos - high * sin
    into[..., 1, :] = high * cos + low * sin
    return turned
