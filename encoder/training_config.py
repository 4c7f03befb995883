"""How to train, as data."""

from typing import Literal

from pydantic import Field

from encoder.config import Strict
from encoder.optimizer import Schedule
from encoder.prediction import Precision


class TrainingConfig(Strict):
    """How to train. One update sees ``batch_size · accumulation_steps`` rows."""

    num_epochs: int = Field(default=3, ge=1)
    batch_size: int = Field(default=32, ge=1)
    accumulation_steps: int = Field(default=1, ge=1)
    learning_rate: float = Field(gt=0)
    weight_decay: float = Field(default=0.01, ge=0)
    warmup_ratio: float = Field(default=0.1, ge=0, le=1)
    schedule: Schedule = "linear"
    layer_decay: float = Field(default=0.9, gt=0, le=1)
    max_grad_norm: float = Field(default=1.0, gt=0)
    label_smoothing: float = Field(default=0.0, ge=0, lt=1)
    class_weights: Literal["none", "balanced"] = "none"
    early_stopping_patience: int | None = Field(default=None, ge=1)
    best_metric: str | None = None
    precision: Precision = "fp32"
    seed: int = Field(default=0, ge=0)
