"""What a training minimises: labels alone, or whatever else speaks of the training rows."""

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from encoder.batches import Batch
from encoder.losses import balanced_weights, loss_weight, summed_loss
from encoder.task import Task


class Objective(Protocol):
    """A loss that is a sum over training rows.

    ``index`` int64 [B] names rows among all training rows; ``epoch`` counts from 0.
    """

    @property
    def identity(self) -> str:
        """All that decides the loss beside the training's own options: two that differ are two runs."""

    def parameters(self) -> dict[str, nn.Parameter]:
        """What trains together with the model and is of no use afterwards, on the device of the model."""

    def prepare(self, batch: Batch, index: NDArray[np.int64], epoch: int) -> Batch:
        """What the model is to see of the rows in ``batch``, which is on the CPU."""

    def weight(self, index: NDArray[np.int64], epoch: int) -> float:
        """What the summed loss of these rows is divided by."""

    def summed_loss(self, logits: Tensor, batch: Batch, index: NDArray[np.int64]) -> Tensor:
        """The loss summed over the rows of ``batch``, of which the model has just computed ``logits``."""


@dataclass(frozen=True)
class Supervised:
    """The loss against labels, as ``encoder.losses`` has it; ``labels`` are those of all training rows.

    With ``balanced`` all rows of a rare class count as much as all of a frequent one.
    """

    task: Task
    labels: NDArray[np.generic]
    label_smoothing: float = 0.0
    balanced: bool = False
    identity: str = "labels"
    _weights: Tensor | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "_weights", balanced_weights(self.task, self.labels) if self.balanced else None
        )

    def parameters(self) -> dict[str, nn.Parameter]:
        """None."""
        return {}

    def prepare(self, batch: Batch, index: NDArray[np.int64], epoch: int) -> Batch:
        """The rows as they are."""
        return batch

    def weight(self, index: NDArray[np.int64], epoch: int) -> float:
        """See ``Objective``."""
        return loss_weight(self.task, self.labels[index], self._weights)

    def summed_loss(self, logits: Tensor, batch: Batch, index: NDArray[np.int64]) -> Tensor:
        """See ``Objective``."""
        assert batch.labels is not None
        return summed_loss(
            self.task, logits, batch.labels,
            weights=None if self._weights is None else self._weights.to(logits.device),
            label_smoothing=self.label_smoothing,
        )  # fmt: skip
