"""Logits for many rows, in their order, whatever the batches."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from encoder.batches import Batch
from encoder.model import Classifier
from encoder.rows import TokenizedRows, length_sorted_batches

Precision = Literal["fp32", "bf16"]


def autocast(device: str, precision: Precision) -> AbstractContextManager[object]:
    """The context in which matrix products run in ``precision``; weights and residuals stay fp32."""
    if precision == "fp32":
        return nullcontext()
    return torch.autocast(torch.device(device).type, dtype=torch.bfloat16)


def predict_logits(
    model: Classifier,
    rows: TokenizedRows,
    *,
    batch_size: int = 64,
    precision: Precision = "fp32",
    device: str = "cpu",
    on_rows: Callable[[int], None] | None = None,
) -> NDArray[np.float32]:
    """Logits float32 [R, C] of ``rows``; ``model`` is left in evaluation mode.

    Batches are of near-equal length. ``on_rows`` is told how many rows each batch added.
    """
    logits = np.empty((len(rows), model.task.num_outputs), dtype=np.float32)
    model.eval()
    with torch.inference_mode(), autocast(device, precision):
        for index in length_sorted_batches(rows.lengths, batch_size):
            output = model(Batch.from_rows(rows.select(index)).to(device))
            logits[index] = output.float().cpu().numpy()
            if on_rows is not None:
                on_rows(len(index))
    return logits
