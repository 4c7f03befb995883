"""Rows into batches: which rows go together, and the tensors a model is fed with."""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from encoder.packing import Packing
from encoder.rows import TokenizedRows

# Tokens of a batch that nothing is learnt from: enough for matrix products at full speed, and little beside
# what a training step holds in memory.
BATCH_TOKENS = 4096
# The tokens of a batch are filled up to a multiple of this; it is a few percent of a small batch.
TOKENS_MULTIPLE_OF = 32


@dataclass(frozen=True)
class Computed:
    """What the bottom ``depth`` layers made of a batch: ``hidden`` [N, D], at depth 0 the embeddings."""

    depth: int
    hidden: Tensor

    def to(self, device: torch.device | str) -> "Computed":
        """The same on ``device``."""
        hidden = self.hidden if torch.device(device).type == "cpu" else self.hidden.pin_memory()
        return Computed(self.depth, hidden.to(device, non_blocking=True))


@dataclass(frozen=True)
class Batch:
    """B rows, packed: ``input_ids`` and ``token_type_ids`` int64 [N], ``labels`` as in ``TokenizedRows``.

    With ``computed`` an encoder goes on from there; ``packing`` is then that of ``computed.hidden``. The last
    ``num_filling_rows`` rows of the packing are none of the B: see ``from_rows``. ``masked`` int64 [M] are
    the tokens to guess, by their place among the N; ``labels`` int64 [M] are then what they were.
    """

    input_ids: Tensor
    token_type_ids: Tensor
    packing: Packing
    labels: Tensor | None = None
    computed: Computed | None = None
    num_filling_rows: int = 0
    masked: Tensor | None = None

    @classmethod
    def from_rows(cls, rows: TokenizedRows, *, multiple_of: int = 1) -> "Batch":
        """All of ``rows`` as one batch.

        One more row, without a label, makes the number of tokens a ``multiple_of``: oneDNN compiles and keeps
        a kernel for every size of a bf16 product that it meets. A classifier leaves that row out, and it
        changes no gradient.
        """
        known = rows.activations
        lengths = rows.lengths if known is None else known.lengths
        ids, types = rows.input_ids.astype(np.int64), rows.token_type_ids.astype(np.int64)
        hidden = None if known is None else known.read()
        if filling := -int(lengths.sum()) % multiple_of:
            lengths = np.append(lengths, filling)
            ids, types = np.pad(ids, (0, filling)), np.pad(types, (0, filling))
            hidden = None if hidden is None else F.pad(hidden, (0, 0, 0, filling))
        return cls(
            input_ids=torch.from_numpy(ids),
            token_type_ids=torch.from_numpy(types),
            packing=Packing.from_lengths(torch.from_numpy(lengths)),
            labels=None if rows.labels is None else torch.from_numpy(rows.labels),
            computed=None if known is None or hidden is None else Computed(known.depth, hidden),
            num_filling_rows=int(filling > 0),
        )

    def to(self, device: torch.device | str) -> "Batch":
        """The same batch on ``device``."""
        if str(device) == "cpu":
            return self
        return Batch(
            self.input_ids.to(device, non_blocking=True),
            self.token_type_ids.to(device, non_blocking=True),
            self.packing.to(device),
            None if self.labels is None else self.labels.to(device, non_blocking=True),
            None if self.computed is None else self.computed.to(device),
            self.num_filling_rows,
            None if self.masked is None else self.masked.to(device, non_blocking=True),
        )


def filling_multiple(max_tokens: int) -> int:
    """``multiple_of`` for a model that holds ``max_tokens``: the row that fills a batch up has to fit."""
    return min(TOKENS_MULTIPLE_OF, max_tokens)


def shuffled_batches(num_rows: int, batch_size: int, *, seed: int, epoch: int) -> list[NDArray[np.int64]]:
    """Row indices of each batch of one epoch: every row once, in an order that (seed, epoch) decides.

    Rows of any lengths may meet: packed, they cost what they are long. Batches of like rows would put rows
    of one kind into one update.
    """
    order = np.random.default_rng([seed, epoch]).permutation(num_rows)
    return [order[i : i + batch_size] for i in range(0, len(order), batch_size)]


def batches_of_tokens(lengths: NDArray[np.int64], num_tokens: int) -> list[NDArray[np.int64]]:
    """Row indices of batches with at most ``num_tokens`` tokens each, or one row; the longest rows first."""
    order = np.argsort(-lengths, kind="stable")
    batches, start, tokens = [], 0, 0
    for place, row in enumerate(order):
        if place > start and tokens + lengths[row] > num_tokens:
            batches.append(order[start:place])
            start, tokens = place, 0
        tokens += lengths[row]
    return [*batches, order[start:]] if len(order) else []
