"""A trained model on its way to a result: scored, compared with what it was before, saved, measured."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from compress.latency import Latency, Unavailable
from compress.size import Size
from compress.workload import Workload, from_rows
from encoder.rows import TokenizedRows
from recipes.account import make_account
from recipes.against import score_against
from recipes.observer import Observer, Recorder, Silent
from recipes.result import (
    Against,
    Epoch,
    ModelResult,
    Result,
    TrainingResult,
    describe_model,
    without_nan,
)
from recipes.scoring import Scored, Splits, judge_logits, score_split
from recipes.training_inputs import TrainingInputs
from recipes.training_options import TrainingOptions

if TYPE_CHECKING:
    from encoder.freezing import Frozen
    from encoder.language_model import MaskedLanguageModel
    from encoder.model import Classifier
    from encoder.training import TrainingOutcome
    from encoder.training_config import TrainingConfig

LATENCY_BATCH_SIZES = (1, 32)
# A run is to end soon after its training, so it times few rows; `enc bench` times more.
TIMED_BATCHES, TIMED_TOKENS = 32, 2048


@dataclass(frozen=True)
class Trained:
    """What is known of a model in ``folder`` after its training."""

    model: ModelResult
    scored: Mapping[str, Scored]
    against: Against | None
    latency: tuple[Latency | Unavailable, ...]
    size: Size


def score_and_save(
    model: "Classifier",
    inputs: TrainingInputs,
    splits: Splits,
    folder: Path,
    options: TrainingOptions,
    observer: Observer,
    *,
    chosen_on_validation: bool,
) -> Trained:
    """Score ``model`` on validation and test, save it in ``folder`` and measure it there.

    ``chosen_on_validation``: of several models it was the one with the best validation scores, which a
    comparison on those rows has to say.
    """
    device = inputs.start.device
    scored = {}
    for name in ("validation", "test"):
        if name in splits.rows:
            observer.stage(f"Scoring the {name} rows")
            scored[name] = score_split(model, splits.rows[name], device=device, observer=observer)
    against = score_against(inputs.before, inputs.data, scored, device=device, observer=observer)
    if against is not None and against.split == "validation" and chosen_on_validation:
        observer.note(
            f"Without test rows, {against.source} is compared with on those that chose the epoch; that "
            "favours the new model."
        )
    latency, size = _save_and_measure(model, inputs, splits, folder, options, observer)
    described = describe_model(str(options.output), folder, model, inputs.start.max_length)
    return Trained(described, scored, against, latency, size)


def save_as_scored(
    model: "Classifier",
    logits: NDArray[np.float32],
    inputs: TrainingInputs,
    splits: Splits,
    folder: Path,
    options: TrainingOptions,
) -> Trained:
    """Save ``model`` in ``folder``, with scores from the ``logits`` it gave the validation rows."""
    labels = splits.rows["validation"].labels
    assert labels is not None
    scored = {"validation": judge_logits(model.task, logits, labels)}
    without = options.model_copy(update={"latency": False})
    latency, size = _save_and_measure(model, inputs, splits, folder, without, Silent())
    described = describe_model(str(options.output), folder, model, inputs.start.max_length)
    return Trained(described, scored, None, latency, size)


def make_latency_workload(rows: TokenizedRows) -> Workload:
    """What every run times its model on, so that the runs of a line can be compared: some of ``rows``."""
    return from_rows(rows, LATENCY_BATCH_SIZES, max_batches=TIMED_BATCHES, max_tokens=TIMED_TOKENS)


def _save_and_measure(
    model: "Classifier",
    inputs: TrainingInputs,
    splits: Splits,
    folder: Path,
    options: TrainingOptions,
    observer: Observer,
) -> tuple[tuple[Latency | Unavailable, ...], Size]:
    from compress.latency import measure_latency
    from compress.size import measure_size
    from encoder.checkpoint import save_classifier

    save_classifier(model, inputs.start.tokenizer, folder)
    latency: list[Latency | Unavailable] = []
    if options.latency:
        observer.stage("Measuring latency, in a process of its own")
        rows = next(splits.rows[name] for name in ("test", "validation", "train") if name in splits.rows)
        latency = measure_latency(
            folder,
            make_latency_workload(rows),
            devices=("cpu", "cuda"),
            threads=options.threads,
            progress=lambda done, total, what: observer.working(done, total),
        )
    return tuple(latency), measure_size(model, folder)


def telling_resumed(observer: Observer, epochs_before: int = 0) -> Callable[[int, int], None]:
    """What ``train_`` calls where it goes on with a training that was interrupted."""

    def tell(epochs: int, updates: int) -> None:
        epoch = epochs_before + epochs
        place = f"epoch {epoch}" if not updates else f"update {updates:,} of epoch {epoch + 1}"
        observer.note(f"Going on after {place}, with the weights as they were then.")

    return tell


def describe_training(
    model: "Classifier | MaskedLanguageModel",
    frozen: "Frozen",
    outcome: "TrainingOutcome",
    config: "TrainingConfig",
    device: str,
) -> TrainingResult:
    """The account of a training that has just ended."""
    import torch

    from compress.memory import peak_memory_bytes

    epochs = (
        Epoch(
            epoch=scores.epoch,
            loss=scores.loss,
            validation=None if scores.validation is None else without_nan(scores.validation),
        )
        for scores in outcome.epochs
    )
    return TrainingResult(
        trainable_parameters=frozen.trainable_parameters,
        total_parameters=frozen.total_parameters,
        frozen=frozen.description,
        new_parameters=model.new_parameters,
        epochs=tuple(epochs),
        best_epoch=outcome.best_epoch,
        best_metric=outcome.best_metric,
        seconds=outcome.seconds,
        rows_per_s=outcome.rows_per_s,
        peak_memory_bytes=peak_memory_bytes(),
        device_memory_bytes=torch.cuda.max_memory_allocated() if device == "cuda" else None,
        precision=config.precision,
        learning_rate=config.learning_rate,
        device=device,
        threads=torch.get_num_threads(),
        resumed_from_step=outcome.resumed_from_step,
    )


def make_result(
    command: str,
    options: TrainingOptions,
    inputs: TrainingInputs,
    splits: Splits,
    training: TrainingResult,
    trained: Trained,
    recorder: Recorder,
    *,
    seconds: float,
    **more: Any,
) -> Result:
    """The ``Result`` of a run that trained a model; ``more`` are the parts that only some commands have."""
    return make_account(
        command,
        options,
        model=trained.model,
        parent=inputs.parent,
        data=inputs.data,
        encoded=splits.encoded,
        scored=trained.scored,
        against=trained.against,
        notes=recorder.notes,
        seconds=seconds,
        training=training,
        latency=trained.latency,
        size=trained.size,
        **more,
    )
