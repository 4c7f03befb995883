"""How far the answers of a model that was written in another form are from those it gave before."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from compress.weighted_scores import predict
from encoder.task import Task


class Parity(BaseModel):
    """Two models on the same ``rows``.

    ``max_difference`` is the largest difference of two logits, ``None`` where one is not finite.
    ``agreement`` is the share of rows with the same label, or of several the same labels; ``None`` for
    regression. ``padding`` is the share of what was computed that was padding.
    """

    model_config = ConfigDict(frozen=True)

    rows: int
    max_difference: float | None
    agreement: float | None
    padding: float


def find_parity(
    task: Task,
    expected: NDArray[np.floating[Any]],
    found: NDArray[np.floating[Any]],
    *,
    padding: float,
) -> Parity:
    """Compare logits [R, C] with the ``expected`` ones."""
    difference = float(np.abs(found - expected).max(initial=0.0))
    agreement = None
    if task.kind != "regression":
        same = predict(task, found) == predict(task, expected)  # [R] or [R, C]
        agreement = float(same.reshape(len(found), -1).all(axis=1).mean())
    return Parity(
        rows=len(found),
        max_difference=difference if np.isfinite(difference) else None,
        agreement=agreement,
        padding=padding,
    )
