"""Rows laid into square blocks, the form in which attention on a CPU computes them.

Attention needs rectangles; rows have lengths. A row on each line of a rectangle means padding, and several
rectangles for rows of like length mean many small operations. Here rows are laid end to end into blocks of
one width, as many as fit, and a token attends only to the tokens of its own row within its block: little
padding, few operations.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby

import torch
from torch import Tensor

# Rows up to this long share blocks; a narrower block would save less than the operations it costs.
MIN_WIDTH = 32
# A block may be this many times as wide as the rows in it before they get narrower ones.
WIDTHS_APART = 2
# Widths, and numbers of blocks, are multiples of these: oneDNN compiles and keeps a kernel, of a megabyte and
# in a millisecond, for every shape of a bf16 product that it meets, so shapes had better come again.
ROUND_WIDTH = 8
ROUND_BLOCKS = 4
# Blocks of one part have at most this many pairs of slots (a head's attention weights), so that what is
# computed of them stays in the cache.
MAX_PAIRS = 40_000


@dataclass(frozen=True)
class Part:
    """Blocks of one width: the slots ``start:stop`` of all, ``num_blocks`` times ``width``.

    ``rows`` int64 [num_blocks, width] is the row of each slot, −1 where there is no token; ``None`` when
    every block is one whole row. ``num_used`` blocks hold tokens.
    """

    start: int
    num_blocks: int
    width: int
    rows: Tensor | None
    num_used: int
    _biases: dict[tuple[int, torch.dtype, int | None], Tensor] = field(default_factory=dict, repr=False)

    @property
    def stop(self) -> int:
        """Where the slots of the next part begin."""
        return self.start + self.num_blocks * self.width

    def bias(self, num_heads: int, dtype: torch.dtype, window: int | None = None) -> Tensor | None:
        """What to add to the scores [num_blocks · H, width, width]: −∞ where a token does not look.

        That is at tokens of other rows, and at those more than ``window`` away; ``None`` if it looks at all.
        """
        window = None if window is None or window >= self.width - 1 else window
        if self.rows is None and window is None:
            return None
        key = (num_heads, dtype, window)
        if key not in self._biases:
            rows = torch.zeros(1, self.width) if self.rows is None else self.rows
            apart = rows[:, :, None] != rows[:, None, :]
            if window is not None:  # a row's tokens are neighbours in their block
                places = torch.arange(self.width)
                apart = apart | ((places[:, None] - places).abs() > window)
            bias = torch.zeros(apart.shape, dtype=dtype).masked_fill_(apart, float("-inf"))
            if len(rows) == self.num_blocks:
                self._biases[key] = bias.repeat_interleave(num_heads, 0)
            else:  # one for all blocks
                self._biases[key] = bias.expand(self.num_blocks * num_heads, -1, -1)
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
        parts = _make_parts(sizes, rounded=False)
        return Blocks(tuple(parts), None)
    widths, places = _place(sizes)
    parts = _make_parts(widths, rounded=True)
    first_slots = [part.start + i * part.width for part in parts for i in range(part.num_used)]
    starts = torch.tensor([first_slots[block] + used for block, used in places])
    row = torch.arange(len(sizes)).repeat_interleave(lengths)  # [N]
    slots = torch.arange(len(row)) + (starts - (lengths.cumsum(0) - lengths))[row]
    rows = torch.full((parts[-1].stop,), -1)
    rows[slots] = row
    return Blocks(
        tuple(replace(part, rows=rows[part.start : part.stop].view(-1, part.width)) for part in parts), slots
    )


def _place(sizes: Sequence[int]) -> tuple[list[int], list[tuple[int, int]]]:
    """The width of each block; for each row its block and where in it: the longest rows first, next fit."""
    widths: list[int] = []
    places = [(0, 0)] * len(sizes)
    used = 0  # slots of the last block that are taken
    for row in sorted(range(len(sizes)), key=lambda row: -sizes[row]):
        size = sizes[row]
        width = widths[-1] if widths else 0
        narrower = size * WIDTHS_APART < width > MIN_WIDTH
        if narrower or used + size > width:
            new = narrower or not widths
            widths.append(max(-(-size // ROUND_WIDTH) * ROUND_WIDTH, MIN_WIDTH) if new else width)
            used = 0
        places[row] = (len(widths) - 1, used)
        used += size
    return widths, places


def _make_parts(widths: Sequence[int], *, rounded: bool) -> list[Part]:
    """Parts for blocks of these widths, equal ones together but for what ``MAX_PAIRS`` allows."""
    parts: list[Part] = []
    slot = 0
    for width, run in groupby(widths):
        left, most = len(list(run)), max(1, MAX_PAIRS // width**2)
        while left > 0:
            used = min(most, left)
            count = min(most, -(-used // ROUND_BLOCKS) * ROUND_BLOCKS) if rounded else used
            parts.append(Part(slot, count, width, None, num_used=used))
            left, slot = left - used, parts[-1].stop
    return parts
