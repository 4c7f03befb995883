"""Texts as vectors: what an encoder made of rows, pooled; for many rows, in their order."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from encoder.batches import BATCH_TOKENS, Batch, batches_of_tokens, filling_multiple
from encoder.model import Encoder
from encoder.pooling import mean_state, pool
from encoder.prediction import Precision, autocast
from encoder.rows import TokenizedRows
from encoder.vector_choice import Choice


def embed_rows(
    encoder: Encoder,
    rows: TokenizedRows,
    choices: Sequence[Choice],
    *,
    precision: Precision = "fp32",
    device: str = "cpu",
    on_rows: Callable[[int], None] | None = None,
) -> list[NDArray[np.float32]]:
    """The vectors of ``rows``, float32 [R, D], for each of ``choices``; all come of one pass.

    Layers above the highest one chosen are not computed. ``on_rows`` is told how many
    rows each batch added.
    """
    vectors = [np.empty((len(rows), encoder.config.hidden_size), dtype=np.float32) for _ in choices]
    multiple_of = filling_multiple(encoder.config.max_tokens) if precision == "bf16" else 1
    encoder.eval()
    with torch.inference_mode(), autocast(device, precision):
        for index in batches_of_tokens(rows.lengths, BATCH_TOKENS):
            batch = Batch.from_rows(rows.select(index), multiple_of=multiple_of).to(device)
            for into, pooled in zip(vectors, _embed_batch(encoder, batch, choices), strict=True):
                into[index] = pooled[: len(index)].cpu().numpy()  # what fills the batch up comes last
            if on_rows is not None:
                on_rows(len(index))
    return vectors


def normalize(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """``vectors`` [R, D] with length 1 each, so that their products are cosines; zeros stay zeros."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled: NDArray[np.float32] = vectors / np.maximum(lengths, np.finfo(np.float32).tiny)
    return scaled


def _embed_batch(encoder: Encoder, batch: Batch, choices: Sequence[Choice]) -> Iterator[Tensor]:
    """[B, D] for each of ``choices``."""
    last = len(encoder.layers)
    if all(choice.pooling == "cls" and choice.states == range(last, last + 1) for choice in choices):
        first = encoder.first(batch).float()  # of the last layer no other token is computed
        yield from (first for _ in choices)
        return
    wanted = {number for choice in choices for number in choice.states}
    states: dict[int, Tensor] = {}
    for number, state in enumerate(encoder.states(batch)):
        if number in wanted:
            states[number] = state
        if number == max(wanted):
            break
    for choice in choices:
        yield pool(mean_state([states[number] for number in choice.states]), batch.packing, choice.pooling)
