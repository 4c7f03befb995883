"""What a masked language model is to guess: which tokens are hidden, and the loss (Devlin et al. 2019).

Of all tokens but the special ones a share is chosen, 15 % as a rule. Of these 80 % become [MASK], 10 % a
token drawn from the whole vocabulary and 10 % stay as they are; the model guesses all of them.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from encoder.batches import Batch
from encoder.rows import TokenizedRows, token_index

# Of what is chosen.
MASKED, REPLACED = 0.8, 0.1
# The constants of SplitMix64 (Steele, Lea and Flood 2014, figure 9).
_STEP, _FIRST, _SECOND = (
    np.uint64(number) for number in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)


@dataclass(frozen=True)
class Masking:
    """What is hidden, decided for each token by its place among all tokens, the epoch and the ``seed``.

    So it does not matter which batch or which process a row is in. ``vocab_size`` bounds the tokens that are
    put in place of others; ``special_ids`` are never chosen, nor put anywhere but for ``mask_token_id``.
    """

    mask_token_id: int
    special_ids: tuple[int, ...]
    vocab_size: int
    probability: float = 0.15
    seed: int = 0

    def choose(
        self, input_ids: NDArray[np.integer], places: NDArray[np.int64], epoch: int
    ) -> NDArray[np.int64]:
        """Which of n tokens are to be guessed: int64 [M]. ``places`` int64 [n] are theirs among all."""
        draws = _uniform(self.seed, epoch, 0, places)
        return np.flatnonzero((draws < self.probability) & ~np.isin(input_ids, self.special_ids))

    def hide(
        self, input_ids: NDArray[np.int64], places: NDArray[np.int64], epoch: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The n tokens as the model sees them, int64 [n], and which of them it is to guess, int64 [M]."""
        chosen = self.choose(input_ids, places, epoch)
        fates = _uniform(self.seed, epoch, 1, places[chosen])
        others = np.setdiff1d(np.arange(self.vocab_size), self.special_ids)
        drawn = others[(_uniform(self.seed, epoch, 2, places[chosen]) * len(others)).astype(np.int64)]
        seen = input_ids.copy()
        seen[chosen] = np.where(
            fates < MASKED,
            self.mask_token_id,
            np.where(fates < MASKED + REPLACED, drawn, input_ids[chosen]),
        )
        return seen, chosen


class MaskedTokens:
    """The objective of a masked language model on ``rows``: see ``encoder.objective.Objective``.

    The loss is the mean over the tokens to guess, of a batch or of all batches of an update.
    """

    def __init__(self, masking: Masking, rows: TokenizedRows) -> None:
        self.masking, self.rows = masking, rows

    @property
    def identity(self) -> str:
        """See ``Objective``."""
        return repr(self.masking)

    def parameters(self) -> dict[str, nn.Parameter]:
        """None."""
        return {}

    def prepare(self, batch: Batch, index: NDArray[np.int64], epoch: int) -> Batch:
        """Hide some tokens, others in every epoch."""
        ids = batch.input_ids.numpy()
        places = self._places(index)
        seen = ids.copy()  # the row that fills the batch up comes last, and nothing in it is hidden
        seen[: len(places)], chosen = self.masking.hide(ids[: len(places)], places, epoch)
        return replace(
            batch,
            input_ids=torch.from_numpy(seen),
            labels=torch.from_numpy(ids[chosen]),
            masked=torch.from_numpy(chosen),
        )

    def weight(self, index: NDArray[np.int64], epoch: int) -> float:
        """The number of tokens to guess; 1 where there is none, as nothing is lost there."""
        places = self._places(index)
        return float(max(1, len(self.masking.choose(self.rows.input_ids[places], places, epoch))))

    def summed_loss(self, logits: Tensor, batch: Batch, index: NDArray[np.int64]) -> Tensor:
        """The cross-entropy summed over the tokens to guess; ``logits`` [M, V]."""
        assert batch.labels is not None
        return F.cross_entropy(logits.float(), batch.labels, reduction="sum")

    def _places(self, index: NDArray[np.int64]) -> NDArray[np.int64]:
        return token_index(self.rows.offsets[:-1][index], self.rows.lengths[index])


def _uniform(seed: int, epoch: int, stream: int, places: NDArray[np.int64]) -> NDArray[np.float64]:
    """Draws from [0, 1), those number ``places`` of a SplitMix64 generator seeded by the other three."""
    key = np.random.SeedSequence([seed, epoch, stream]).generate_state(1, np.uint64)[0]
    with np.errstate(over="ignore"):  # the arithmetic is modulo 2⁶⁴
        z = key + (places.astype(np.uint64) + np.uint64(1)) * _STEP
        z = (z ^ (z >> np.uint64(30))) * _FIRST
        z = (z ^ (z >> np.uint64(27))) * _SECOND
        z ^= z >> np.uint64(31)
    return np.asarray((z >> np.uint64(11)) * 2.0**-53, dtype=np.float64)
