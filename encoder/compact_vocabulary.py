"""Training with only the rows of the word table that the data uses.

A row that no training text uses has no gradient, so AdamW leaves it as it is (the word table is not decayed):
training a table of the used rows is the same training, without the gradient, the moments and the update of
all the others. For a multilingual vocabulary that is most of the optimizer's work and memory.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import torch
from torch import nn

from encoder.model import Classifier
from encoder.rows import TokenizedRows


@contextmanager
def compact_vocabulary_(model: Classifier, rows: Sequence[TokenizedRows]) -> Iterator[list[TokenizedRows]]:
    """Within the context the word table has just the pieces in ``rows``; yields those rows renumbered.

    Afterwards the whole table is back, with the trained rows in place, also after an error. A frozen table
    is left alone, as there is nothing to gain.
    """
    table = model.encoder.embeddings.word
    whole = table.weight
    if not whole.requires_grad:
        yield list(rows)
        return
    used = np.unique(np.concatenate([part.input_ids for part in rows]))
    new_id = np.full(whole.shape[0], -1, dtype=np.int32)
    new_id[used] = np.arange(len(used), dtype=np.int32)
    index = torch.from_numpy(used.astype(np.int64)).to(whole.device)
    table.weight = nn.Parameter(whole.detach()[index].clone())
    try:
        yield [replace(part, input_ids=new_id[part.input_ids]) for part in rows]
    finally:
        with torch.no_grad():
            whole.index_copy_(0, index, table.weight.to(whole.device))
        table.weight = whole
