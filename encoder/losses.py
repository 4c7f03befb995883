"""What training minimises: one loss per kind of task, summed over rows so that batches add up exactly."""

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from encoder.task import Task


def balanced_weights(task: Task, labels: NDArray[np.generic]) -> Tensor | None:
    """Weights float32 [C] against imbalance, from the training labels; None for regression.

    Single-label: R / (C · rows of the class), the usual "balanced" weight. Multi-label: rows without the
    label over rows with it, the weight of a positive. A class without rows gets weight 1.
    """
    if task.kind == "regression":
        return None
    R, C = len(labels), task.num_outputs
    if task.kind == "single_label":
        counts = np.bincount(labels.astype(np.int64), minlength=C)
        weights = np.where(counts > 0, R / (C * np.maximum(counts, 1)), 1.0)
    else:
        positives = labels.astype(np.float64).sum(0)
        weights = np.where(positives > 0, (R - positives) / np.maximum(positives, 1), 1.0)
    return torch.tensor(weights, dtype=torch.float32)


def summed_loss(
    task: Task, logits: Tensor, labels: Tensor, *, weights: Tensor | None = None, label_smoothing: float = 0.0
) -> Tensor:
    """The loss summed over the B rows of ``logits`` [B, C], a scalar; divide by ``loss_weight`` of its rows.

    Single-label: cross-entropy; multi-label: binary cross-entropy per label, averaged over the C labels;
    regression: squared error. Label smoothing ε moves ε of the target mass to the uniform distribution
    (Szegedy et al. 2016, section 7), for multi-label to 1/2.
    """
    logits = logits.float()
    if task.kind == "single_label":
        return F.cross_entropy(
            logits, labels, weight=weights, label_smoothing=label_smoothing, reduction="sum"
        )
    if task.kind == "multi_label":
        target = labels * (1.0 - label_smoothing) + 0.5 * label_smoothing
        loss = F.binary_cross_entropy_with_logits(logits, target, pos_weight=weights, reduction="sum")
        return loss / task.num_outputs
    return F.mse_loss(logits.squeeze(-1), labels, reduction="sum")


def loss_weight(task: Task, labels: NDArray[np.generic], weights: Tensor | None = None) -> float:
    """What the summed loss of rows with these labels is divided by: their number, or their total weight."""
    if task.kind == "single_label" and weights is not None:
        return float(weights[torch.from_numpy(labels.astype(np.int64))].sum())
    return float(len(labels))
