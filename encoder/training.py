"""The training loop: packed, length-bucketed batches, AdamW, the best epoch kept, resumable at any moment."""

import hashlib
import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import BaseModel, Field
from torch import Tensor

from encoder.batches import Batch, filling_multiple, shuffled_batches
from encoder.compact_vocabulary import compact_vocabulary_
from encoder.config import Strict
from encoder.engine import ALL_ON, Engine
from encoder.errors import EncError
from encoder.freezing import trainable, training_mode_
from encoder.frozen_prefix import frozen_depth
from encoder.heap import return_freed_memory
from encoder.language_model import MaskedLanguageModel
from encoder.metrics import is_better, main_metric, score
from encoder.model import Classifier, use_
from encoder.objective import Objective, Supervised
from encoder.optimizer import Optimizer, Schedule, parameter_groups, rate_factor
from encoder.prediction import Precision, autocast, predict_logits
from encoder.processes import ALONE, Processes
from encoder.rounded_weights import rounded_weights_
from encoder.rows import TokenizedRows
from encoder.training_state import EpochScores, Position, TrainingState

SAVE_EVERY_S = 60.0
# … but saving never takes more than about 1/50 of the time
SAVE_SHARE = 50
READ_LOSS_EVERY = 10

Model = Classifier | MaskedLanguageModel


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


@dataclass(frozen=True)
class TrainingProgress:
    """Told after each update: ``epoch`` from 1, ``step`` updates of ``num_steps`` in the whole run.

    ``loss`` is the mean of the epoch so far; ``validation`` the scores, after an epoch's last update only.
    """

    epoch: int
    num_epochs: int
    step: int
    num_steps: int
    loss: float
    rows_per_s: float
    eta_s: float
    validation: dict[str, float] | None = None


@dataclass(frozen=True)
class TrainingOutcome:
    """What training did. ``seconds`` and ``rows_per_s`` count updates only, not evaluation or saving."""

    epochs: list[EpochScores]
    best_epoch: int
    best_metric: str
    seconds: float
    rows_per_s: float
    resumed_from_step: int | None
    stopped_early: bool


def train_(
    model: Model,
    train: TokenizedRows,
    validation: TokenizedRows | None,
    config: TrainingConfig,
    *,
    work_folder: Path,
    resume: bool = False,
    device: str = "cpu",
    on_progress: Callable[[TrainingProgress], None] | None = None,
    on_resume: Callable[[int, int], None] | None = None,
    objective: Objective | None = None,
    engine: Engine = ALL_ON,
    validate: Callable[[], dict[str, float]] | None = None,
    processes: Processes = ALONE,
) -> TrainingOutcome:
    """Train ``model`` in place and leave it on ``device`` in evaluation mode with the best epoch's weights.

    What is frozen beforehand stays bit-identical. Rows may hold what it makes of them
    (``encoder.frozen_prefix``); the result is the same to rounding, dropout included. Without ``validation``
    the last epoch counts as best. ``objective`` is what to minimise, else the loss against the labels of
    ``train`` as ``config`` has it, and ``validate`` what scores the model after each epoch, else scores on
    ``validation``; a language model needs both, and the name of its score as ``config.best_metric``. A state
    in ``work_folder`` is continued if ``resume``, and ``on_resume`` told of how many epochs are done, and
    how many updates of the next; a run killed at any moment continues to the same result
    (same machine and number of threads). ``engine``: see there. Errors: EncError when the loss is not finite.

    Several ``processes`` call this with the same arguments. Each computes its share of every batch, and all
    end with the same weights; but for dropout they are those of one process, to rounding. The first one
    writes, into a folder that all can read.
    """
    for rows in (train, validation):
        if rows is not None and rows.activations and rows.activations.depth > frozen_depth(model):
            raise ValueError("rows hold what layers made of them that are to be trained")
    cuda = [torch.cuda.current_device()] if torch.device(device).type == "cuda" else []
    with torch.random.fork_rng(devices=cuda):
        torch.manual_seed(config.seed)
        model.to(device)
        use_(model, engine)
        parts = [train] if validation is None else [train, validation]
        with ExitStack() as stack:
            if engine.compact_vocabulary and isinstance(model, Classifier):  # guessing needs the whole table
                parts = stack.enter_context(compact_vocabulary_(model, parts))
            rounded: Mapping[Tensor, Tensor] = {}
            # Gradients of several batches are summed in float32.
            one_batch = config.accumulation_steps == 1 and processes.count == 1
            if engine.rounded_weights and config.precision == "bf16" and one_batch:
                rounded = stack.enter_context(rounded_weights_(model))
            trainer = _Trainer(
                model,
                parts[0],
                None if validation is None else parts[1],
                config,
                work_folder,
                device,
                on_progress,
                objective,
                engine,
                rounded,
                validate,
                processes,
            )
            return trainer.run(resume, on_resume)


def load_best_(model: Classifier, rows: Sequence[TokenizedRows], work_folder: Path) -> None:
    """Put into ``model`` the best weights that ``train_`` with these ``rows`` left in ``work_folder``.

    ``rows``: those of training and, where there were any, of validation.
    """
    with compact_vocabulary_(model, rows):
        TrainingState(work_folder, "").load_best_(trainable(model))
    model.eval()


class _Trainer:
    def __init__(
        self,
        model: Model,
        train: TokenizedRows,
        validation: TokenizedRows | None,
        config: TrainingConfig,
        work_folder: Path,
        device: str,
        on_progress: Callable[[TrainingProgress], None] | None,
        objective: Objective | None,
        engine: Engine,
        rounded: Mapping[Tensor, Tensor],
        validate: Callable[[], dict[str, float]] | None,
        processes: Processes,
    ) -> None:
        self.model, self.train, self.validation, self.config = model, train, validation, config
        self.device, self.on_progress, self.engine = device, on_progress, engine
        self.validate, self.processes = validate, processes
        self.objective = objective or self._supervised()
        self.metric = config.best_metric or main_metric(self._classifier.task)
        self.parameters = trainable(model) | self.objective.parameters()
        groups = parameter_groups(
            self.parameters,
            num_layers=model.config.num_hidden_layers,
            learning_rate=config.learning_rate,
            weight_decay=config.weight_decay,
            layer_decay=config.layer_decay,
        )
        self.rates = [group["lr"] for group in groups]
        self.optimizer = Optimizer(
            groups, max_grad_norm=config.max_grad_norm, rounded=rounded, fused=engine.fused_optimizer
        )
        self.steps_per_epoch = math.ceil(len(train) / (config.batch_size * config.accumulation_steps))
        self.multiple_of = filling_multiple(model.config.max_tokens) if engine.filled_batches else 1
        self.num_steps = self.steps_per_epoch * config.num_epochs
        self.state = TrainingState(work_folder, self._identity())
        self.position = Position()

    @property
    def _classifier(self) -> Classifier:
        assert isinstance(self.model, Classifier), "a language model needs an objective and a way to validate"
        return self.model

    def _supervised(self) -> Supervised:
        labels, config = self.train.labels, self.config
        assert labels is not None
        balanced = config.class_weights == "balanced"
        return Supervised(self._classifier.task, labels, config.label_smoothing, balanced=balanced)

    def run(self, resume: bool, on_resume: Callable[[int, int], None] | None = None) -> TrainingOutcome:
        resumed = self.state.load_(self.parameters, self.optimizer) if resume else None
        if resumed is not None:
            self.position = resumed
        start = None if resumed is None else resumed.epoch * self.steps_per_epoch + resumed.step
        if resumed is not None and on_resume is not None:
            on_resume(resumed.epoch, resumed.step)
        self._last_save, self._save_cost = time.monotonic(), 0.0
        while self.position.epoch < self.config.num_epochs and not self._patience_is_over():
            self._run_epoch()
        self.processes.wait()
        self.state.load_best_(self.parameters)
        self.model.eval()
        position = self.position
        return TrainingOutcome(
            epochs=position.history,
            best_epoch=position.best_epoch,
            best_metric=self.metric,
            seconds=position.seconds,
            rows_per_s=len(self.train) * len(position.history) / max(position.seconds, 1e-9),
            resumed_from_step=start,
            stopped_early=len(position.history) < self.config.num_epochs,
        )

    def _run_epoch(self) -> None:
        position, config = self.position, self.config
        batches = shuffled_batches(len(self.train), config.batch_size, seed=config.seed, epoch=position.epoch)
        training_mode_(self.model)
        pending: list[Tensor] = []
        while position.step < self.steps_per_epoch:
            started = time.perf_counter()
            first = position.step * config.accumulation_steps
            group = batches[first : first + config.accumulation_steps]
            pending.append(self._update(group))
            position.step += 1
            position.rows_seen += sum(map(len, group))
            last = position.step == self.steps_per_epoch
            if last or len(pending) == READ_LOSS_EVERY:
                self._read_losses(pending)  # reading a loss waits for the device, so not at every update
            position.seconds += time.perf_counter() - started
            if last:
                break
            self._report()
            if not pending:
                self._save_if_due()
        self._finish_epoch()

    def _update(self, group: Sequence[NDArray[np.int64]]) -> Tensor:
        """One optimizer step on the batches of ``group``; returns their summed, detached loss."""
        config, step = self.config, self.position.epoch * self.steps_per_epoch + self.position.step
        factor = rate_factor(
            step,
            num_steps=self.num_steps,
            num_warmup_steps=round(config.warmup_ratio * self.num_steps),
            schedule=config.schedule,
        )
        for rate, parameter_group in zip(self.rates, self.optimizer.param_groups, strict=True):
            parameter_group["lr"] = rate * factor
        epoch = self.position.epoch
        total = self.objective.weight(np.concatenate(group), epoch)
        num_rows = sum(map(len, group))
        loss_sum = torch.zeros((), device=self.device)
        self.optimizer.zero_grad()
        if self.processes.count > 1:  # all would drop the same, and only the first one's state is kept
            torch.manual_seed(self._seed_of(step))
        for index in filter(len, map(self.processes.share, group)):
            batch = Batch.from_rows(self.train.select(index), multiple_of=self.multiple_of)
            batch = self.objective.prepare(batch, index, epoch).to(self.device)
            with autocast(self.device, config.precision):
                logits = self.model(batch)
            loss = self.objective.summed_loss(logits, batch, index)
            (loss / total).backward()
            loss_sum += loss.detach() * (num_rows / total)
        if self.processes.count > 1:
            self.processes.add_(self.optimizer.gradients())
        self.optimizer.step()
        return loss_sum

    def _read_losses(self, pending: list[Tensor]) -> None:
        loss_sum = torch.stack(pending).sum()
        self.processes.add_([loss_sum])
        total = float(loss_sum)
        pending.clear()
        if self.engine.freed_memory_returned:
            return_freed_memory()
        if not math.isfinite(total):
            raise EncError(
                f"training diverged: the loss is {total} in epoch {self.position.epoch + 1}, update "
                f"{self.position.step} of {self.steps_per_epoch}; lower --learning-rate (now "
                f"{self.config.learning_rate:g}), raise --warmup-ratio, or try --precision fp32"
            )
        self.position.loss_sum += total
        self.position.loss_rows = self.position.rows_seen

    def _finish_epoch(self) -> None:
        position = self.position
        scores = None
        if self.validate is not None:
            scores = self.validate()
        elif self.validation is not None and self.validation.labels is not None:
            logits = predict_logits(self._classifier, self.validation, device=self.device)
            scores = score(self._classifier.task, logits, self.validation.labels)
        position.history.append(
            EpochScores(position.epoch + 1, position.loss_sum / max(1, position.rows_seen), scores)
        )
        self._report(scores)
        value = math.nan if scores is None else scores[self.metric]
        first = scores is None or position.best_epoch == 0
        improved = first or is_better(self.metric, value, position.best_score)
        if improved:
            position.improved_epoch = position.epoch + 1
        if improved or value == position.best_score:  # of equals the later: trained longer, at a lower rate
            if self.processes.is_first:
                self.state.save_best(self.parameters)
            position.best_epoch, position.best_score = position.epoch + 1, value
        position.epoch, position.step = position.epoch + 1, 0
        position.loss_sum, position.loss_rows, position.rows_seen = 0.0, 0, 0
        self._save()

    def _patience_is_over(self) -> bool:
        patience = self.config.early_stopping_patience
        position = self.position
        return (
            patience is not None
            and not (self.validation is None and self.validate is None)
            and position.epoch - position.improved_epoch >= patience
            and position.best_epoch > 0
        )

    def _report(self, validation: dict[str, float] | None = None) -> None:
        if self.on_progress is None:
            return
        position = self.position
        step = position.epoch * self.steps_per_epoch + position.step
        rows = len(self.train) * position.epoch + position.rows_seen
        rows_per_s = rows / max(position.seconds, 1e-9)
        self.on_progress(
            TrainingProgress(
                epoch=position.epoch + 1,
                num_epochs=self.config.num_epochs,
                step=step,
                num_steps=self.num_steps,
                loss=position.loss_sum / max(1, position.loss_rows),
                rows_per_s=rows_per_s,
                eta_s=(len(self.train) * self.config.num_epochs - rows) / max(rows_per_s, 1e-9),
                validation=validation,
            )
        )

    def _save_if_due(self) -> None:
        if time.monotonic() - self._last_save > max(SAVE_EVERY_S, SAVE_SHARE * self._save_cost):
            self._save()

    def _save(self) -> None:
        if not self.processes.is_first:
            return
        started = time.monotonic()
        self.state.save(self.position, self.parameters, self.optimizer)
        self._last_save = time.monotonic()
        self._save_cost = self._last_save - started

    def _identity(self) -> str:
        """A hash of all that decides the result: config, architecture, task, what trains, training rows."""
        described: list[BaseModel] = [self.config, self.model.config]
        if isinstance(self.model, Classifier):
            described.append(self.model.task)
        shape = [one.model_dump(mode="json") for one in described]
        named = [shape, self.objective.identity, sorted(self.parameters)]
        digest = hashlib.sha256(json.dumps(named, sort_keys=True).encode())
        train = self.train
        for array in (train.input_ids, train.token_type_ids, train.offsets, train.labels):
            digest.update(b"" if array is None else array.tobytes())
        return digest.hexdigest()

    def _seed_of(self, step: int) -> int:
        """What decides the dropout of this process in update ``step``."""
        sequence = np.random.SeedSequence([self.config.seed, step, self.processes.rank])
        return int(sequence.generate_state(1, np.uint32)[0])
