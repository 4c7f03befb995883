"""Multi-head self-attention over packed rows (Vaswani et al. 2017, section 3.2)."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from encoder.config import LayerShape
from encoder.dropout import dropout
from encoder.linear import Linear
from encoder.packing import Packing

# Above this many attention weights (B·H·T·T) their backward pass computes them again instead of keeping them:
# they grow with T² and would be most of the memory of a training step.
MAX_KEPT_WEIGHTS = 1 << 24


def attention_weights(query: Tensor, key: Tensor, key_mask: Tensor | None) -> Tensor:
    """softmax(QKᵀ/√K): query and key [B, H, T, K] → [B, H, T, T]; masked keys get weight 0."""
    scores = (query * (1.0 / math.sqrt(query.shape[-1]))) @ key.transpose(-2, -1)  # [B, H, T, T]
    if key_mask is not None:
        scores = scores.masked_fill(~key_mask, float("-inf"))
    return scores.softmax(dim=-1)


def mix(query: Tensor, key: Tensor, value: Tensor, key_mask: Tensor | None, p: float) -> Tensor:
    """Attention of [B, H, T, K] each → [B, H, T, K], with dropout ``p`` on the weights.

    Without dropout torch's fused kernel does it. With dropout on the CPU that kernel falls back to plain
    matrix products, slower than these.
    """
    if p == 0.0 or query.device.type != "cpu":
        return F.scaled_dot_product_attention(query, key, value, key_mask, dropout_p=p)
    B, H, T, _ = query.shape
    if B * H * T * T > MAX_KEPT_WEIGHTS:
        mixed: Tensor = checkpoint(_mix, query, key, value, key_mask, p, use_reentrant=False)
        return mixed
    return _mix(query, key, value, key_mask, p)


def _mix(query: Tensor, key: Tensor, value: Tensor, key_mask: Tensor | None, p: float) -> Tensor:
    return dropout(attention_weights(query, key, key_mask), p) @ value


class SelfAttention(nn.Module):
    """Self-attention with H heads of size K between D-wide tokens; tokens attend within their row only.

    The three projections are one matrix: rows [query heads; key heads; value heads] of ``qkv``. With no heads
    the result is the output bias.
    """

    def __init__(self, hidden_size: int, shape: LayerShape, dropout: float) -> None:
        super().__init__()
        self.num_attention_heads = shape.num_attention_heads
        self.head_size = shape.head_size
        width = self.num_attention_heads * self.head_size
        self.qkv = Linear(hidden_size, 3 * width)
        self.output = Linear(width, hidden_size)
        self.dropout = dropout

    def forward(
        self, x: Tensor, packing: Packing, *, need_weights: bool = False
    ) -> tuple[Tensor, Tensor | None]:
        """x [N, D] → ([N, D], weights [B, H, T, T] if ``need_weights``)."""
        if self.num_attention_heads == 0:
            weights = x.new_zeros(packing.num_rows, 0, packing.max_length, packing.max_length)
            return self.output(x.new_zeros(len(x), 0)), weights if need_weights else None
        qkv = self.qkv(x)  # [N, 3·H·K]
        mixed = [self._mix_rows(qkv[tokens], part) for tokens, part in packing.parts]
        output = self.output(torch.cat(mixed) if len(mixed) > 1 else mixed[0])
        if not need_weights:
            return output, None
        query, key, _ = self._split_heads(qkv, packing)
        return output, attention_weights(query, key, packing.key_mask)

    def _mix_rows(self, qkv: Tensor, packing: Packing) -> Tensor:
        query, key, value = self._split_heads(qkv, packing)
        mixed = mix(query, key, value, packing.key_mask, self.dropout if self.training else 0.0)
        return packing.unpad(mixed.transpose(1, 2)).flatten(1)  # [B, H, T, K] → [N, H·K]

    def _split_heads(self, qkv: Tensor, packing: Packing) -> tuple[Tensor, Tensor, Tensor]:
        """[N, 3·H·K] → query, key and value, each [B, H, T, K]."""
        padded = packing.pad(qkv).unflatten(-1, (3, self.num_attention_heads, self.head_size))
        query, key, value = padded.permute(2, 0, 3, 1, 4).unbind(0)  # of [B, T, 3, H, K]
        return query, key, value
