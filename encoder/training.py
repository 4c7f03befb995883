"""The training loop: batches in a new order each epoch, the best epoch kept, resumable at any moment."""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from encoder.batches import shuffled_batches
from encoder.compact_vocabulary import compact_vocabulary_
from encoder.engine import ALL_ON, Engine
from encoder.errors import EncError
from encoder.freezing import trainable, training_mode_
from encoder.frozen_prefix import frozen_depth
from encoder.heap import return_freed_memory
from encoder.metrics import is_better, main_metric, score
from encoder.model import Classifier, use_
from encoder.objective import Objective, Supervised
from encoder.prediction import predict_logits
from encoder.processes import ALONE, Processes
from encoder.rounded_weights import rounded_weights_
from encoder.rows import TokenizedRows
from encoder.training_config import TrainingConfig
from encoder.training_state import EpochScores, Position, TrainingState, identify
from encoder.updates import Model, Updates

SAVE_EVERY_S = 60.0
# … but saving never takes more than about 1/50 of the time
SAVE_SHARE = 50
READ_LOSS_EVERY = 10


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
    parts: Sequence[TokenizedRows] = [train] if validation is None else [train, validation]
    cuda = [torch.cuda.current_device()] if torch.device(device).type == "cuda" else []
    with torch.random.fork_rng(devices=cuda):
        torch.manual_seed(config.seed)
        model.to(device)
        with _engine_at_work_(model, parts, config, engine, processes) as (parts, rounded):
            objective = objective or _supervised(model, parts[0], config)
            if validate is None and validation is not None and validation.labels is not None:
                validate = partial(_score, model, parts[1], device)
            updates = Updates(
                model, parts[0], objective, config,
                device=device, engine=engine, rounded=rounded, processes=processes,
            )  # fmt: skip
            identity = identify(config, model, objective.identity, updates.parameters, parts[0])
            state = TrainingState(work_folder, identity)
            trainer = _Trainer(model, updates, config, state, validate, on_progress, engine, processes)
            return trainer.run(resume, on_resume)


@contextmanager
def _engine_at_work_(
    model: Model,
    parts: Sequence[TokenizedRows],
    config: TrainingConfig,
    engine: Engine,
    processes: Processes,
) -> Iterator[tuple[Sequence[TokenizedRows], Mapping[Tensor, Tensor]]]:
    """What training works on: ``parts`` in the vocabulary that it needs, and copies of weights in bf16."""
    use_(model, engine)
    with ExitStack() as stack:
        if engine.compact_vocabulary and isinstance(model, Classifier):  # guessing needs the whole table
            parts = stack.enter_context(compact_vocabulary_(model, parts))
        rounded: Mapping[Tensor, Tensor] = {}
        # Gradients of several batches are summed in float32.
        one_batch = config.accumulation_steps == 1 and processes.count == 1
        if engine.rounded_weights and config.precision == "bf16" and one_batch:
            rounded = stack.enter_context(rounded_weights_(model))
        yield parts, rounded


def _classifier(model: Model) -> Classifier:
    assert isinstance(model, Classifier), "a language model needs an objective and a way to validate"
    return model


def _supervised(model: Model, rows: TokenizedRows, config: TrainingConfig) -> Supervised:
    assert rows.labels is not None
    balanced = config.class_weights == "balanced"
    return Supervised(_classifier(model).task, rows.labels, config.label_smoothing, balanced=balanced)


def _score(model: Model, rows: TokenizedRows, device: str) -> dict[str, float]:
    """The scores of ``model`` on ``rows``, which have labels."""
    classifier = _classifier(model)
    assert rows.labels is not None
    return score(classifier.task, predict_logits(classifier, rows, device=device), rows.labels)


def load_best_(model: Classifier, rows: Sequence[TokenizedRows], work_folder: Path) -> None:
    """Put into ``model`` the best weights that ``train_`` with these ``rows`` left in ``work_folder``.

    ``rows``: those of training and, where there were any, of validation.
    """
    with compact_vocabulary_(model, rows):
        TrainingState(work_folder, "").load_best_(trainable(model))
    model.eval()


class _Trainer:
    """The loop: which updates are made, when the state is saved, and which epoch is kept."""

    def __init__(
        self,
        model: Model,
        updates: Updates,
        config: TrainingConfig,
        state: TrainingState,
        validate: Callable[[], dict[str, float]] | None,
        on_progress: Callable[[TrainingProgress], None] | None,
        engine: Engine,
        processes: Processes,
    ) -> None:
        self.model, self.updates, self.config, self.state = model, updates, config, state
        self.validate, self.on_progress = validate, on_progress
        self.engine, self.processes = engine, processes
        self.metric = config.best_metric or main_metric(_classifier(model).task)
        self.num_rows = len(updates.rows)
        self.position = Position()

    def run(self, resume: bool, on_resume: Callable[[int, int], None] | None = None) -> TrainingOutcome:
        resumed = self.state.load_(self.updates.parameters, self.updates.optimizer) if resume else None
        if resumed is not None:
            self.position = resumed
        start = None if resumed is None else resumed.epoch * self.updates.per_epoch + resumed.step
        if resumed is not None and on_resume is not None:
            on_resume(resumed.epoch, resumed.step)
        self._last_save, self._save_cost = time.monotonic(), 0.0
        while self.position.epoch < self.config.num_epochs and not self._patience_is_over():
            self._run_epoch()
        self.processes.wait()
        self.state.load_best_(self.updates.parameters)
        self.model.eval()
        position = self.position
        return TrainingOutcome(
            epochs=position.history,
            best_epoch=position.best_epoch,
            best_metric=self.metric,
            seconds=position.seconds,
            rows_per_s=self.num_rows * len(position.history) / max(position.seconds, 1e-9),
            resumed_from_step=start,
            stopped_early=len(position.history) < self.config.num_epochs,
        )

    def _run_epoch(self) -> None:
        position, config = self.position, self.config
        batches = shuffled_batches(self.num_rows, config.batch_size, seed=config.seed, epoch=position.epoch)
        training_mode_(self.model)
        pending: list[Tensor] = []
        while position.step < self.updates.per_epoch:
            started = time.perf_counter()
            first = position.step * config.accumulation_steps
            group = batches[first : first + config.accumulation_steps]
            pending.append(self.updates.make(group, position.epoch, position.step))
            position.step += 1
            position.rows_seen += sum(map(len, group))
            last = position.step == self.updates.per_epoch
            if last or len(pending) == READ_LOSS_EVERY:
                self._read_losses(pending)  # reading a loss waits for the device, so not at every update
            position.seconds += time.perf_counter() - started
            if last:
                break
            self._report()
            if not pending:
                self._save_if_due()
        self._finish_epoch()

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
                f"{self.position.step} of {self.updates.per_epoch}; lower --learning-rate (now "
                f"{self.config.learning_rate:g}), raise --warmup-ratio, or try --precision fp32"
            )
        self.position.loss_sum += total
        self.position.loss_rows = self.position.rows_seen

    def _finish_epoch(self) -> None:
        position = self.position
        scores = None if self.validate is None else self.validate()
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
                self.state.save_best(self.updates.parameters)
            position.best_epoch, position.best_score = position.epoch + 1, value
        position.epoch, position.step = position.epoch + 1, 0
        position.loss_sum, position.loss_rows, position.rows_seen = 0.0, 0, 0
        self._save()

    def _patience_is_over(self) -> bool:
        patience = self.config.early_stopping_patience
        position = self.position
        return (
            patience is not None
            and self.validate is not None
            and position.epoch - position.improved_epoch >= patience
            and position.best_epoch > 0
        )

    def _report(self, validation: dict[str, float] | None = None) -> None:
        if self.on_progress is None:
            return
        position = self.position
        step = position.epoch * self.updates.per_epoch + position.step
        rows = self.num_rows * position.epoch + position.rows_seen
        rows_per_s = rows / max(position.seconds, 1e-9)
        self.on_progress(
            TrainingProgress(
                epoch=position.epoch + 1,
                num_epochs=self.config.num_epochs,
                step=step,
                num_steps=self.updates.number,
                loss=position.loss_sum / max(1, position.loss_rows),
                rows_per_s=rows_per_s,
                eta_s=(self.num_rows * self.config.num_epochs - rows) / max(rows_per_s, 1e-9),
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
        self.state.save(self.position, self.updates.parameters, self.updates.optimizer)
        self._last_save = time.monotonic()
        self._save_cost = self._last_save - started
