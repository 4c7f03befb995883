"""Proof that a pruned model is what it should be: removed equals masked, and saved equals computed."""

from pathlib import Path

import numpy as np

from compress.gates import passed_over, silenced
from compress.process import default_threads
from compress.removal import Kept, keep_layers, keep_units
from compress.sessions import fresh_logits
from compress.units import Unit
from encoder.errors import CompressionError
from encoder.model import Classifier
from encoder.prediction import predict_logits
from encoder.rows import TokenizedRows

# In units of the largest logit: rounding, in sums of another order, is a hundredth of that.
TOLERANCE = 1e-4


def masked_difference(
    model: Classifier, unit: Unit, kept: Kept, rows: TokenizedRows, *, device: str = "cpu"
) -> float:
    """The largest difference of logits between ``model`` with units silenced and with them removed.

    Raises:
        CompressionError: it is more than rounding.
    """
    with silenced(model, unit, kept):
        masked = predict_logits(model, rows, device=device)
    removed = predict_logits(keep_units(model, unit, kept), rows, device=device)
    return _compare(masked, removed, f"silencing {unit} and removing them")


def passed_over_difference(
    model: Classifier, kept: list[int], rows: TokenizedRows, *, device: str = "cpu"
) -> float:
    """As ``masked_difference``, of whole layers."""
    with passed_over(model, kept):
        masked = predict_logits(model, rows, device=device)
    removed = predict_logits(keep_layers(model, kept), rows, device=device)
    return _compare(masked, removed, "passing over layers and removing them")


def reloaded_difference(
    model: Classifier, folder: Path, rows: TokenizedRows, *, threads: int | None = None
) -> float:
    """The largest difference of logits between ``model`` and what a fresh process loads from ``folder``.

    Both compute on the CPU; ``model`` is left there.

    Raises:
        CompressionError: it is more than rounding. EncError: the folder cannot be loaded.
    """
    at_once = [np.arange(len(rows))]
    loaded = fresh_logits("torch-fp32", folder, rows, at_once, threads=default_threads(threads))
    here = predict_logits(model.to("cpu"), rows)
    return _compare(loaded, here, f"the model in memory and {folder} in a fresh process")


def _compare(one: np.ndarray, other: np.ndarray, what: str) -> float:
    difference = float(np.abs(one - other).max(initial=0.0))
    if not difference <= TOLERANCE * max(1.0, float(np.abs(other).max(initial=0.0))):
        raise CompressionError(f"{what} should give the same logits, but they differ by {difference:.2g}")
    return difference
