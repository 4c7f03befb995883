"""One vector for a text, out of what the layers made of its tokens."""

from collections.abc import Sequence

import torch
from torch import Tensor

from encoder.packing import Packing
from encoder.vector_choice import Pooling


def pool(hidden: Tensor, packing: Packing, pooling: Pooling) -> Tensor:
    """One vector a row: [N, D] → float32 [B, D]; zeros for a row without tokens.

    ``mean`` and ``max`` are over all tokens of the row, special tokens included, as in Reimers and Gurevych
    2019 (Sentence-BERT, section 3); ``cls`` is the first token's.
    """
    if pooling == "cls":
        return packing.first(hidden).float()
    hidden = hidden.float()
    pooled = hidden.new_zeros(packing.num_rows, hidden.shape[1])
    if pooling == "mean":
        pooled.index_add_(0, packing.rows, hidden)
        return pooled / packing.lengths.clamp(min=1)[:, None]
    rows = packing.rows[:, None].expand_as(hidden)
    return pooled.scatter_reduce_(0, rows, hidden, "amax", include_self=False)


def mean_state(states: Sequence[Tensor]) -> Tensor:
    """The mean of hidden states, [N, D] each."""
    return states[0] if len(states) == 1 else torch.stack([state.float() for state in states]).mean(0)
