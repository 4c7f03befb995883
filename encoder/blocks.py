"""Rows laid into square blocks, the form in which attention on a CPU computes them.

Attention needs rectangles; rows have lengths. A row on each line of a rectangle means padding, and several
rectangles for rows of like length mean many small operations. Here rows are laid end to end into blocks of
one width, as many as fit, and a token attends only to the tokens of its own row within its block: little
padding, few operations.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby

import torch
from torch import Tensor

# Rows up to this long share blocks; a narrower block would save less than the operations it costs.
MIN_WIDTH = 32
# A block may be this many times as wide as the rows in it before they get narrower ones.
WIDTHS_APART = 2
# Blocks of one part have at most this many pairs of slots (a head's attention weights), so that what is
# computed of them stays in the cache.
MAX_PAIRS = 40_000


@dataclass(frozen=True)
class Part:
    """Blocks of one width: the slots ``start:stop`` of all, ``num_blocks`` times ``width``.

    ``rows`` int64 [num_blocks, width] is the row of each slot, −1 where there is no token; ``None`` when
    every block is one whole row.
    """

    start: int
    num_blocks: int
    width: int
    rows: Tensor | None
    _biases: dict[tuple[int, torch.dtype], Tensor] = field(default_factory=dict, repr=False)

    @property
    def stop(self) -> int:
        """Where the slots of the next part begin."""
        return self.start + self.num_blocks * self.width

    def bias(self, num_heads: int, dtype: torch.dtype) -> Tensor | None:
        """What to add to the scores [num_blocks · H, width, width]: −∞ between tokens of different rows."""
        if self.rows is None:
            return None
        key = (num_heads, dtype)
        if key not in self._biases:
            apart = self.rows[:, :, None] != self.rows[:, None, :]
            bias = torch.zeros(apart.shape, dtype=dtype).masked_fill_(apart, float("-inf"))
            self._biases[key] = bias.repeat_interleave(num_heads, 0)
        return self._biases[key]


@dataclass(frozen=True)
class Blocks:
    """All rows of a packing (B rows, N tokens) in parts of equally wide blocks, S slots in all.

    ``slots`` int64 [N] is the slot of each packed token; ``None`` where that is the token itself.
    """

    parts: tuple[Part, ...]
    slots: Tensor | None

    @property
    def num_slots(self) -> int:
        """S."""
        return self.parts[-1].stop if self.parts else 0

    @cached_property
    def _tokens(self) -> Tensor:
        """The token of each slot, int64 [S]; where there is none, some token."""
        assert self.slots is not None
        tokens = torch.zeros(self.num_slots, dtype=torch.int64)
        tokens[self.slots] = torch.arange(len(self.slots))
        return tokens

    def spread(self, tokens: Tensor) -> Tensor:
        """[N, …] → [S, …]; slots without a token hold those of any."""
        return tokens if self.slots is None else tokens.index_select(0, self._tokens)

    def spread_zeros(self, tokens: Tensor) -> Tensor:
        """[N, …] → [S, …]; slots without a token hold zeros."""
        if self.slots is None:
            return tokens
        return tokens.new_zeros(self.num_slots, *tokens.shape[1:]).index_copy_(0, self.slots, tokens)

    def collect(self, slots: Tensor) -> Tensor:
        """[S, …] → [N, …], the inverse of ``spread``."""
        return slots if self.slots is None else slots.index_select(0, self.slots)


def lay_out(lengths: Tensor) -> Blocks:
    """Blocks for rows of these lengths (int64 [B] on the CPU, in any order)."""
    sizes: list[int] = lengths.tolist()
    if not any(sizes):
        return Blocks((), None)
    if len(set(sizes)) == 1:  # every row is a block, and every slot a token
        widths, slots, rows = sizes, None, None
    else:
        widths, starts = _place(sizes)
        row = torch.arange(len(sizes)).repeat_interleave(lengths)  # [N]
        shift = torch.tensor(starts) - (lengths.cumsum(0) - lengths)
        slots = torch.arange(len(row)) + shift[row]
        rows = torch.full((sum(widths),), -1)
        rows[slots] = row
    parts: list[Part] = []
    slot = 0
    for width, count in _runs(widths):
        end = slot + count * width
        parts.append(Part(slot, count, width, None if rows is None else rows[slot:end].view(count, width)))
        slot = end
    return Blocks(tuple(parts), slots)


def _place(sizes: Sequence[int]) -> tuple[list[int], list[int]]:
    """The width of each block, and the slot at which each row begins: the longest rows first, next fit."""
    widths: list[int] = []
    starts = [0] * len(sizes)
    block = used = 0  # the slot where the last block begins, and how many of its slots are taken
    for row in sorted(range(len(sizes)), key=lambda row: -sizes[row]):
        size = sizes[row]
        width = widths[-1] if widths else 0
        narrower = size * WIDTHS_APART < width > MIN_WIDTH
        if narrower or used + size > width:
            block += width
            widths.append(max(size, MIN_WIDTH) if narrower or not widths else width)
            used = 0
        starts[row] = block + used
        used += size
    return widths, starts


def _runs(widths: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Each width with how many blocks in a row have it, never more than ``MAX_PAIRS`` allows."""
    for width, run in groupby(widths):
        count, most = len(list(run)), max(1, MAX_PAIRS // width**2)
        for done in range(0, count, most):
            yield width, min(most, count - done)
