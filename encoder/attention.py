"""Multi-head self-attention over packed rows (Vaswani et al. 2017, section 3.2)."""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from encoder.autograd import apply
from encoder.blocks import Blocks, Part
from encoder.config import LayerShape
from encoder.dropout import draw_kept, dropout
from encoder.engine import ALL_ON, Engine
from encoder.linear import Linear
from encoder.local_attention import is_worth_it, mix_tiles
from encoder.packing import Packing
from encoder.rotary import rotate

# A part of a batch with more attention weights than this (blocks · H · width²) computes them again in its
# backward pass instead of keeping them: they grow with the width², and with 12 heads rows of more than 209
# tokens are beyond it. Kept, those of 512 tokens would save 3 % of a step's time, in bf16 on one thread, and
# be 30 % of what it keeps for the backward pass (multilingual-e5-small, 69 MB a row).
MAX_KEPT_WEIGHTS = 1 << 19


class _BlockAttention(torch.autograd.Function):
    """softmax(QKᵀ/√K)·V within blocks of rows: qkv [N, 3·H·K] → [N, H·K], with dropout ``p`` on the weights.

    Written out, with its gradient, because a training step on the CPU would otherwise spend as long on the
    many small operations around the matrix products as on these. The product adds the mask; the scale of
    dropout is in the values, which are fewer than the weights. All is in the dtype of ``qkv``; torch computes
    a softmax and its gradient in float32 inside.
    """

    @staticmethod
    def forward(
        ctx: Any, qkv: Tensor, blocks: Blocks, num_heads: int, window: int | None, p: float, cheap: bool
    ) -> Tensor:
        H, K = num_heads, qkv.shape[1] // (3 * num_heads)
        spread = blocks.spread(qkv)  # [S, 3·H·K]
        mixed = qkv.new_empty(blocks.num_slots, H * K)
        saved: list[Tensor | None] = []
        ctx.scale = 1.0
        for part in blocks.parts:
            query, key, value = _split(spread[part.start : part.stop], part.width, H)
            weights = _weights(query, key, part, window)
            dropped, kept = weights, None
            if p > 0:
                drawn, ctx.scale = draw_kept(weights.shape, p, cheap=cheap)
                dropped = weights * drawn.to(weights.dtype)
                kept = drawn.to(torch.uint8)
                value = value * ctx.scale
            joined = mixed[part.start : part.stop].view(-1, part.width, H, K)
            joined.copy_(torch.bmm(dropped, value).view(-1, H, part.width, K).transpose(1, 2))
            saved += [query, key, value, None if weights.numel() > MAX_KEPT_WEIGHTS else weights, kept]
        ctx.blocks, ctx.num_heads, ctx.window = blocks, num_heads, window
        ctx.save_for_backward(*saved)
        return blocks.collect(mixed)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None, None, None, None]:
        saved = ctx.saved_tensors
        blocks, H, K = ctx.blocks, ctx.num_heads, grads[0].shape[1] // ctx.num_heads
        spread = blocks.spread_zeros(grads[0])
        result = spread.new_empty(blocks.num_slots, 3 * H * K)
        for number, part in enumerate(blocks.parts):
            query, key, value, weights, kept = saved[5 * number : 5 * number + 5]
            slots, T = slice(part.start, part.stop), part.width
            weights = _weights(query, key, part, ctx.window) if weights is None else weights
            grad = spread[slots].view(-1, T, H, K).transpose(1, 2).reshape(-1, T, K)
            grad_weights = torch.bmm(grad, value.transpose(1, 2))  # [blocks · H, T, T]
            dropped = weights
            if kept is not None:
                kept = kept.to(weights.dtype)
                grad_weights.mul_(kept)
                dropped = weights * kept
            grad_scores = torch._softmax_backward_data(grad_weights, weights, -1, weights.dtype)
            grad_qkv = spread.new_empty(3, *query.shape)
            torch.bmm(grad_scores, key, out=grad_qkv[0])
            grad_qkv[0].mul_(1.0 / math.sqrt(K))
            torch.bmm(grad_scores.transpose(1, 2), query, out=grad_qkv[1])
            torch.bmm(dropped.transpose(1, 2), grad, out=grad_qkv[2])
            grad_qkv[2].mul_(ctx.scale)
            joined = grad_qkv.view(3, -1, H, T, K).permute(1, 3, 0, 2, 4)  # [blocks, T, 3, H, K]
            result[slots].view(joined.shape).copy_(joined)
        return blocks.collect(result), None, None, None, None, None


def _split(qkv: Tensor, width: int, num_heads: int) -> tuple[Tensor, Tensor, Tensor]:
    """qkv [blocks · T, 3·H·K], T the ``width`` → query/√K, key and value, each [blocks · H, T, K]."""
    split = qkv.unflatten(1, (3, num_heads, -1)).unflatten(0, (-1, width))  # [blocks, T, 3, H, K]
    query, key, value = split.permute(2, 0, 3, 1, 4).flatten(1, 2).unbind(0)
    return query * (1.0 / math.sqrt(query.shape[-1])), key, value


def _weights(query: Tensor, key: Tensor, part: Part, window: int | None) -> Tensor:
    """softmax(QKᵀ) of [blocks · H, T, K] each, the query divided by √K: [blocks · H, T, T]."""
    bias = part.bias(len(query) // part.num_blocks, query.dtype, window)
    if bias is None:
        scores = torch.bmm(query, key.transpose(1, 2))
    else:
        scores = torch.baddbmm(bias, query, key.transpose(1, 2))
    return scores.softmax(-1)


def attention_weights(query: Tensor, key: Tensor, mask: Tensor | None) -> Tensor:
    """softmax(QKᵀ/√K): query and key [B, H, T, K] → [B, H, T, T]; where ``mask`` is false the weight is 0."""
    scores = (query * (1.0 / math.sqrt(query.shape[-1]))) @ key.transpose(-2, -1)  # [B, H, T, T]
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    return scores.softmax(dim=-1)


def mix(
    qkv: Tensor,
    packing: Packing,
    num_heads: int,
    p: float,
    engine: Engine = ALL_ON,
    window: int | None = None,
) -> Tensor:
    """Attention within rows: qkv [N, 3·H·K] → [N, H·K], with dropout ``p`` on the weights.

    With a ``window`` a token sees those at most so far away.
    """
    if window is not None and engine.blocks and is_worth_it(packing, window):
        with torch.autocast(qkv.device.type, enabled=False):
            return mix_tiles(qkv, packing, num_heads, window, p)
    if engine.blocks and qkv.device.type == "cpu":
        with torch.autocast("cpu", enabled=False):
            return apply(_BlockAttention, qkv, packing.blocks, num_heads, window, p, engine.cheap_dropout)
    query, key, value = split_heads(qkv, packing, num_heads)
    padded = F.scaled_dot_product_attention(query, key, value, packing.visible(window), dropout_p=p)
    return packing.unpad(padded.transpose(1, 2)).flatten(1)


def mix_first(
    query: Tensor,
    key_value: Tensor,
    packing: Packing,
    num_heads: int,
    p: float,
    engine: Engine = ALL_ON,
    window: int | None = None,
) -> Tensor:
    """Attention of one query a row: [B, H·K] and its row's keys and values [N, 2·H·K] → [B, H·K]."""
    key, value = packing.pad(key_value).unflatten(-1, (2, num_heads, -1)).permute(2, 0, 3, 1, 4).unbind(0)
    mask = packing.first_visible(window)
    weights = attention_weights(query.unflatten(-1, (num_heads, 1, -1)), key, mask)
    mixed: Tensor = dropout(weights, p, cheap=engine.cheap_dropout) @ value
    return mixed.flatten(1)  # [B, H, 1, T] @ [B, H, T, K]


def split_heads(qkv: Tensor, packing: Packing, num_heads: int) -> tuple[Tensor, Tensor, Tensor]:
    """[N, 3·H·K] → query, key and value, each [B, H, T, K], padded."""
    padded = packing.pad(qkv).unflatten(-1, (3, num_heads, -1))  # [B, T, 3, H, K]
    query, key, value = padded.permute(2, 0, 3, 1, 4).unbind(0)
    return query, key, value


class SelfAttention(nn.Module):
    """Self-attention with H heads of size K between D-wide tokens; tokens attend within their row only.

    The three projections are one matrix: rows [query heads; key heads; value heads] of ``qkv``. With no heads
    the result is the output bias, or zero. ``rotary``: queries and keys are turned by their positions.
    """

    def __init__(
        self, hidden_size: int, shape: LayerShape, dropout: float, *, rotary: bool = False, bias: bool = True
    ) -> None:
        super().__init__()
        self.num_attention_heads = shape.num_attention_heads
        self.head_size = shape.head_size
        self.window = shape.window
        self.rope_theta = shape.rope_theta if rotary else None
        width = self.num_attention_heads * self.head_size
        self.qkv = Linear(hidden_size, 3 * width, bias=bias)
        self.output = Linear(width, hidden_size, bias=bias)
        self.dropout = dropout
        self.engine = ALL_ON

    def forward(
        self, x: Tensor, packing: Packing, *, need_weights: bool = False, first_only: bool = False
    ) -> tuple[Tensor, Tensor | None]:
        """x [N, D] → ([N, D], weights [B, H, T, T] if ``need_weights``).

        With ``first_only`` only the first token of each row asks, and the result is [B, D].
        """
        H, p = self.num_attention_heads, self.dropout if self.training else 0.0
        if H == 0:
            weights = x.new_zeros(packing.num_rows, 0, packing.max_length, packing.max_length)
            rows = packing.num_rows if first_only else len(x)
            return self.output(x.new_zeros(rows, 0)), weights if need_weights else None
        if first_only:
            width = H * self.head_size
            query = self.qkv(packing.first(x), slice(0, width))  # [B, H·K]; position 0 turns by nothing
            key_value = self._turn(self.qkv(x, slice(width, None)), packing, 1)  # [N, 2·H·K]
            return self.output(mix_first(query, key_value, packing, H, p, self.engine, self.window)), None
        qkv = self._turn(self.qkv(x), packing, 2)  # [N, 3·H·K]
        output = self.output(mix(qkv, packing, H, p, self.engine, self.window))
        if not need_weights:
            return output, None
        query, key, _ = split_heads(qkv, packing, H)
        return output, attention_weights(query, key, packing.visible(self.window))

    def _turn(self, projected: Tensor, packing: Packing, num_turned: int) -> Tensor:
        """Turn queries and keys, the first ``num_turned`` parts, by the tokens' positions."""
        if self.rope_theta is None:
            return projected
        turns = packing.turns(self.head_size, self.rope_theta)
        return rotate(projected, turns, self.num_attention_heads, num_turned)
