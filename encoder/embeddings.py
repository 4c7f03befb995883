"""What a token is before the first layer: word (+ position) (+ segment), normalised."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from encoder.config import EncoderConfig
from encoder.dropout import Dropout
from encoder.linear import Linear


class Table(nn.Module):
    """An embedding table [rows, width] that leaves its initialisation to whoever builds the model."""

    def __init__(self, rows: int, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(rows, width))

    def forward(self, index: Tensor) -> Tensor:
        """index int64 [N] → [N, width]."""
        return F.embedding(index, self.weight)


def sinusoidal_positions(rows: int, width: int) -> Tensor:
    """The fixed position table [rows, width] of Vaswani et al. 2017, section 3.5 (sines in even columns)."""
    frequency = torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
    angle = torch.arange(rows)[:, None] * frequency  # [rows, ceil(width / 2)]
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)[:, :width]


class Embeddings(nn.Module):
    """Word, position and token-type embeddings, summed, normalised, projected to D where narrower."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        width = config.embedding_size
        self.position_offset = config.position_offset
        self.word = Table(config.vocab_size, width)
        self.position = None  # rotary positions are in attention
        if config.position_embedding != "rotary":
            self.position = Table(config.max_position_embeddings, width)
            self.position.weight.requires_grad_(config.position_embedding == "learned")
        self.token_type = Table(config.type_vocab_size, width) if config.type_vocab_size else None
        self.norm = nn.LayerNorm(width, eps=config.layer_norm_eps, bias=config.norm_bias)
        self.dropout = Dropout(config.hidden_dropout)
        self.projection = Linear(width, config.hidden_size) if width != config.hidden_size else None

    def forward(self, input_ids: Tensor, token_type_ids: Tensor, positions: Tensor) -> Tensor:
        """int64 [N] each → [N, D]. ``positions`` count from 0 within a row."""
        x: Tensor = self.word(input_ids)
        if self.position is not None:
            x = x + self.position(positions + self.position_offset)
        if self.token_type is not None:
            x = x + self.token_type(token_type_ids)
        x = self.dropout(self.norm(x))
        return x if self.projection is None else self.projection(x)
