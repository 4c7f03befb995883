"""How long a row takes on this machine as it is now, in training and in prediction: a short trial."""

import contextlib
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from encoder.config import EncoderConfig
from encoder.rows import TokenizedRows

if TYPE_CHECKING:
    from encoder.model import Classifier
    from encoder.training import TrainingProgress

# Each part of a trial takes about so long, or does so much.
SECONDS, UPDATES, ROWS = 4.0, 8, 256
# The least rows that say something, and how much longer a row takes in training: only to choose how many.
FEW_ROWS, TRAINING_FACTOR = 8, 4.0


@dataclass(frozen=True)
class RowTimes:
    """What a trial found: seconds of a row of ``tokens`` tokens on average in a model of shape ``config``.

    ``process_s`` is a fresh process until it has the model in memory.
    """

    config: EncoderConfig
    num_outputs: int
    tokens: float
    training_s: float
    prediction_s: float
    process_s: float


def measure_times(
    model: "Classifier",
    train: TokenizedRows,
    *,
    batch_size: int,
    precision: Literal["fp32", "bf16"],
    device: str = "cpu",
) -> RowTimes:
    """Predict and train for some seconds, and start a process. ``model``, on ``device``, is changed."""
    prediction = _time_prediction(model, train, device)
    fitting = int(SECONDS / 3 / max(TRAINING_FACTOR * prediction, 1e-9))
    batch_size = min(batch_size, max(FEW_ROWS, fitting), len(train))
    return RowTimes(
        config=model.config,
        num_outputs=model.task.num_outputs,
        tokens=float(train.lengths.mean()),
        prediction_s=prediction,
        training_s=_time_training(model, train, batch_size, precision, device),
        process_s=_time_process(model, train),
    )


def _time_prediction(model: "Classifier", train: TokenizedRows, device: str) -> float:
    """Seconds of a row, rows of all lengths by chance."""
    from encoder.prediction import predict_logits

    order = np.random.default_rng(0).permutation(len(train))
    started = time.perf_counter()
    predict_logits(model, train.select(order[:FEW_ROWS]), device=device)
    warm = (time.perf_counter() - started) / min(FEW_ROWS, len(train))
    number = int(min(ROWS, max(FEW_ROWS, SECONDS / max(warm, 1e-9))))
    some = train.select(order[:number])
    started = time.perf_counter()
    predict_logits(model, some, device=device)
    return (time.perf_counter() - started) / len(some)


class _EnoughError(Exception):
    """The trial has seen what it needs."""


def _time_training(
    model: "Classifier",
    train: TokenizedRows,
    batch_size: int,
    precision: Literal["fp32", "bf16"],
    device: str,
) -> float:
    """Seconds of a row in an update, all included; the first update, which is slower, does not count."""
    from encoder.training import train_
    from encoder.training_config import TrainingConfig

    config = TrainingConfig(
        num_epochs=UPDATES, batch_size=batch_size, learning_rate=1e-5, precision=precision
    )
    moments: list[float] = []

    def note(progress: "TrainingProgress") -> None:
        moments.append(time.perf_counter())
        many = len(moments) > UPDATES or moments[-1] - moments[0] > SECONDS
        if many and len(moments) > 1:
            raise _EnoughError

    with tempfile.TemporaryDirectory(prefix="enc-") as folder, contextlib.suppress(_EnoughError):
        train_(model, train, None, config, work_folder=Path(folder), device=device, on_progress=note)
    return (moments[-1] - moments[0]) / (batch_size * (len(moments) - 1))


def _time_process(model: "Classifier", train: TokenizedRows) -> float:
    """Seconds until a fresh process is ready, its model, of any weights, loaded."""
    from compress.process import default_threads
    from compress.sessions import Sessions
    from compress.workload import Case, Workload
    from encoder.checkpoint import save_weights

    with tempfile.TemporaryDirectory(prefix="enc-") as name:
        folder = Path(name)
        save_weights(model, model.task, folder)
        case = Case(1, None, (train.select(np.arange(1)),))
        with Sessions(Workload((case,)), threads=default_threads(None)) as sessions:
            started = time.perf_counter()
            with sessions.open("torch-fp32", folder, device="cpu"):
                return time.perf_counter() - started
