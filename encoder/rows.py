"""Tokenized rows, packed end to end: the form in which data waits to be trained on."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class TokenizedRows:
    """R rows of token ids, all tokens end to end (N in total), with the labels.

    ``input_ids`` int32 [N]; ``token_type_ids`` int8 [N]; ``offsets`` int64 [R+1], row ``r`` being tokens
    ``offsets[r]:offsets[r+1]``; ``labels`` int64 [R] (single-label), float32 [R, C] (multi-label),
    float32 [R] (regression) or ``None`` for rows without labels.
    """

    input_ids: NDArray[np.int32]
    token_type_ids: NDArray[np.int8]
    offsets: NDArray[np.int64]
    labels: NDArray[np.generic] | None = None

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
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        starts = np.repeat(self.offsets[:-1][index] - offsets[:-1], lengths)
        tokens = starts + np.arange(offsets[-1])
        return TokenizedRows(
            input_ids=self.input_ids[tokens],
            token_type_ids=self.token_type_ids[tokens],
            offsets=offsets,
            labels=None if self.labels is None else self.labels[index],
        )
