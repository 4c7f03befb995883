"""Packed rows: the tokens of all rows end to end, padded only where attention needs a rectangle.

``Packing`` is the one type that says which tokens exist and which row they belong to. There is no second
mask: a token that is masked out is not in the packing, so it can change nothing.
"""

from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor

from encoder.blocks import Blocks, lay_out
from encoder.rotary import Rotation, rotation


@dataclass(frozen=True)
class Packing:
    """B rows of ``lengths`` tokens each (int64 [B], 0 allowed), end to end: N tokens in all.

    ``max_length`` is T, the width of the rectangle that ``pad`` makes. ``tiles`` keeps the masks of
    ``encoder.local_attention``.
    """

    lengths: Tensor
    max_length: int
    num_tokens: int
    _turns: dict[tuple[int, float], Rotation] = field(default_factory=dict, repr=False, compare=False)
    _near: dict[int, Tensor] = field(default_factory=dict, repr=False, compare=False)
    tiles: dict[int, Tensor] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def from_lengths(cls, lengths: Tensor) -> "Packing":
        """The packing of rows of these lengths (int64 [B], on any device)."""
        if len(lengths) == 0:
            return cls(lengths, 0, 0)
        return cls(lengths, int(lengths.max()), int(lengths.sum()))

    @property
    def num_rows(self) -> int:
        """B."""
        return len(self.lengths)

    @cached_property
    def is_rectangular(self) -> bool:
        """Whether all rows have T tokens, so that padding is a view."""
        return self.num_tokens == self.num_rows * self.max_length

    @cached_property
    def blocks(self) -> Blocks:
        """The rows laid into square blocks, for attention on the CPU."""
        return lay_out(self.lengths)

    @cached_property
    def starts(self) -> Tensor:
        """The packed index of each row's first token, int64 [B]."""
        return self.lengths.cumsum(0) - self.lengths

    @cached_property
    def rows(self) -> Tensor:
        """The row of each token, int64 [N]."""
        rows = torch.arange(self.num_rows, device=self.lengths.device)
        return rows.repeat_interleave(self.lengths, output_size=self.num_tokens)

    @cached_property
    def positions(self) -> Tensor:
        """The index of each token within its row, int64 [N]."""
        tokens = torch.arange(self.num_tokens, device=self.lengths.device)
        return tokens - self.starts[self.rows]

    @cached_property
    def _slots(self) -> Tensor:
        return self.rows * self.max_length + self.positions

    @cached_property
    def key_mask(self) -> Tensor | None:
        """Which slots of the rectangle may be attended to, bool [B, 1, 1, T]; None when all may.

        A row without tokens keeps one slot, so that a softmax over it stays finite; nobody reads the result.
        """
        if self.is_rectangular:
            return None
        slots = torch.arange(self.max_length, device=self.lengths.device)
        mask = slots < self.lengths.clamp(min=1)[:, None]  # [B, T]
        return mask[:, None, None, :]

    def visible(self, window: int | None) -> Tensor | None:
        """Which slots each slot attends to, bool, broadcast to [B, 1, T, T]; None when all to all.

        With a ``window`` those at most so far away. Every slot sees itself, for the reason of ``key_mask``.
        """
        if window is None or window >= self.max_length - 1:
            return self.key_mask
        if window not in self._near:
            slots = torch.arange(self.max_length, device=self.lengths.device)
            apart = (slots[:, None] - slots).abs()  # [T, T]
            near = (apart <= window)[None, None]
            self._near[window] = near if self.key_mask is None else near & self.key_mask | (apart == 0)
        return self._near[window]

    def first_visible(self, window: int | None) -> Tensor | None:
        """Which slots the first of each row attends to, bool, broadcast to [B, 1, 1, T]."""
        mask = self.visible(window)
        return mask if mask is None else mask[:, :, :1]

    def turns(self, head_size: int, theta: float) -> Rotation:
        """The rotary turns of all tokens (``encoder.rotary``), computed once for all layers."""
        key = (head_size, theta)
        if key not in self._turns:
            self._turns[key] = rotation(self.positions, head_size, theta)
        return self._turns[key]

    def pad(self, tokens: Tensor) -> Tensor:
        """[N, …] → [B, T, …], zeros where a row has no token."""
        shape = (self.num_rows, self.max_length, *tokens.shape[1:])
        if self.is_rectangular:
            return tokens.reshape(shape)
        slots = tokens.new_zeros(shape[0] * shape[1], *tokens.shape[1:])
        return slots.index_copy(0, self._slots, tokens).view(shape)

    def unpad(self, padded: Tensor) -> Tensor:
        """[B, T, …] → [N, …]; the inverse of ``pad``."""
        flat = padded.reshape(self.num_rows * self.max_length, *padded.shape[2:])
        if self.is_rectangular:
            return flat
        return flat.index_select(0, self._slots)

    def first(self, tokens: Tensor) -> Tensor:
        """The first token of each row, [N, D] → [B, D]; zeros for a row without tokens."""
        if self.num_tokens == 0:
            return tokens.new_zeros(self.num_rows, *tokens.shape[1:])
        first = tokens.index_select(0, self.starts.clamp(max=self.num_tokens - 1))
        return torch.where((self.lengths > 0)[:, None], first, torch.zeros_like(first))

    def to(self, device: torch.device | str) -> "Packing":
        """The same packing with its tensors on ``device``."""
        return Packing(self.lengths.to(device, non_blocking=True), self.max_length, self.num_tokens)
