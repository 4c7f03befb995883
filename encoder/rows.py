"""Tokenized rows, packed end to end: the form in which data waits to be trained on."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from encoder.activations import Activations


@dataclass(frozen=True)
class TokenizedRows:
    """R rows of token ids, all tokens end to end (N in total), with the labels.

    ``input_ids`` int32 [N]; ``token_type_ids`` int8 [N]; ``offsets`` int64 [R+1], row ``r`` being tokens
    ``offsets[r]:offsets[r+1]``; ``labels`` int64 [R] (single-label), float32 [R, C] (multi-label),
    float32 [R] (regression) or ``None`` for rows without labels. ``activations``: what the bottom layers made
    of these rows, where that is known already and need not be computed (``encoder.frozen_prefix``).
    """

    input_ids: NDArray[np.int32]
    token_type_ids: NDArray[np.int8]
    offsets: NDArray[np.int64]
    labels: NDArray[np.generic] | None = None
    activations: "Activations | None" = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens of each row, int64 [R]."""
        return np.diff(self.offsets)

    def select(self, index: Sequence[int] | NDArray[np.int64]) -> "TokenizedRows":
        """The rows of ``index``, in its order."""
        index = np.asarray(index, dtype=np.int64)
        lengths = self.lengths[index]
        tokens = token_index(self.offsets[:-1][index], lengths)
        return TokenizedRows(
            input_ids=self.input_ids[tokens],
            token_type_ids=self.token_type_ids[tokens],
            offsets=offsets_of(lengths),
            labels=None if self.labels is None else self.labels[index],
            activations=None if self.activations is None else self.activations.select(index),
        )


def offsets_of(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where rows of ``lengths`` tokens begin when they lie end to end: int64 [R] → [R+1], from 0 to N."""
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def token_index(starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """The places of ``lengths`` tokens from ``starts`` on, end to end: int64 [R] both → [N]."""
    offsets = offsets_of(lengths)
    return np.repeat(starts - offsets[:-1], lengths) + np.arange(offsets[-1])


def length_sorted_batches(
    lengths: Sequence[int] | NDArray[np.int64], batch_size: int
) -> list[NDArray[np.int64]]:
    """Row indices of each batch with the longest rows first: the first batch needs the most memory."""
    order = np.argsort(-np.asarray(lengths), kind="stable")
    return [order[i : i + batch_size] for i in range(0, len(order), batch_size)]
