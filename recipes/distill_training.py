"""Training a student, with its teacher or without: in one step, or layer by layer in several."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from compress.distillation import (
    Distillation,
    DistillationConfig,
    Weights,
    attention_width,
    choose_relation_heads,
)
from compress.student import matching_states
from compress.teacher import Targets
from compress.watching import Points, watched
from encoder.config import EncoderConfig
from encoder.freezing import Freezing, freeze_
from encoder.model import Classifier, start_at_base_rates_
from encoder.rows import TokenizedRows
from encoder.training import train_
from recipes.distill_config import DistillConfig
from recipes.distill_student import StudentPlan, make_student
from recipes.observer import Observer
from recipes.result import TrainingResult
from recipes.trained import describe_training, telling_resumed
from recipes.training_inputs import StartingModel, make_training_config

if TYPE_CHECKING:
    from encoder.objective import Objective
    from encoder.training import TrainingProgress


@dataclass(frozen=True)
class Lesson:
    """All that training a student takes. The first ``num_labelled`` rows of ``train`` have labels."""

    options: DistillConfig
    start: StartingModel
    plan: StudentPlan
    teacher: Classifier
    train: TokenizedRows
    num_labelled: int
    validation: TokenizedRows | None
    observer: Observer

    @property
    def labelled(self) -> TokenizedRows:
        """The rows that have labels."""
        if self.num_labelled == len(self.train):
            return self.train
        return self.train.select(np.arange(self.num_labelled))

    @property
    def teacher_points(self) -> Points:
        """What of the teacher any step learns from."""
        last = self.teacher.config.num_hidden_layers
        configs = [
            DistillationConfig(
                weights=Weights(**self.options.weights),
                states=matching_states(last, size),
                layers=(size - 1, last - 1),
            )
            for size in self.plan.sizes
        ]
        return Points(
            frozenset().union(*(one.teacher_points.hidden for one in configs)),
            frozenset().union(*(one.teacher_points.projections for one in configs)),
        )

    def describe_loss(self, student: EncoderConfig) -> DistillationConfig:
        """What a student of this shape learns."""
        options, teacher = self.options, self.teacher.config
        size, last = student.num_hidden_layers, teacher.num_hidden_layers
        heads = choose_relation_heads(
            attention_width(student, size - 1), attention_width(teacher, last - 1), options.relation_heads
        )
        return DistillationConfig(
            weights=Weights(**options.weights),
            temperature=options.temperature,
            hidden_loss=options.hidden_loss,
            states=matching_states(last, size),
            layers=(size - 1, last - 1),
            num_relation_heads=heads or 1,
            label_smoothing=options.label_smoothing,
            balanced=options.class_weights == "balanced",
        )


@dataclass(frozen=True)
class Taught:
    """A trained student: the teacher's layers it started from, if any, and the loss of its last step."""

    model: Classifier
    training: TrainingResult
    layers: tuple[int, ...] | None
    loss: DistillationConfig


def teach(lesson: Lesson, targets: Targets | None, work: Path) -> Taught:
    """Train a student in all its steps, from ``targets`` or, where these are ``None``, from labels alone.

    ``work`` is for the training's own files, a folder a step: with the option ``resume`` it goes on from
    what is there.
    """
    model: Classifier | None = None
    layers: Sequence[int] | None = None
    done: list[TrainingResult] = []
    for step, num_epochs in enumerate(_share_epochs(lesson.options.num_epochs, len(lesson.plan.sizes))):
        lesson.observer.stage(_name_step(lesson.plan, step, taught=targets is not None))
        model, chosen = make_student(
            lesson.options, lesson.plan, lesson.teacher, lesson.labelled, lesson.start.device,
            step=step, before=model,
        )  # fmt: skip
        if chosen is not None:
            layers = list(chosen) if layers is None else [layers[place] for place in chosen]
        if step == 0 or layers is not None:
            _say_start(lesson, model, layers, taught=targets is not None)
        before = sum(len(part.epochs) for part in done)
        done.append(_train(lesson, model, targets, num_epochs, work / f"step-{step}", epochs_before=before))
    assert model is not None
    return Taught(
        model,
        _join(done),
        None if layers is None else tuple(layers),
        lesson.describe_loss(model.config),
    )


def _share_epochs(num_epochs: int, steps: int) -> list[int]:
    """Epochs of each step; what does not divide evenly goes to the last."""
    each = num_epochs // steps
    return [*[each] * (steps - 1), num_epochs - each * (steps - 1)]


def _name_step(plan: StudentPlan, step: int, *, taught: bool) -> str:
    """``Training the student, step 1 of 2: 4 layers``; the control says what it is."""
    who = "the student" if taught else "the control, the same student from the labels alone"
    if len(plan.sizes) == 1:
        return f"Training {who}"
    layers = f"{plan.sizes[step]} layer{'' if plan.sizes[step] == 1 else 's'}"
    return f"Training {who}, step {step + 1} of {len(plan.sizes)}: {layers}"


def _say_start(lesson: Lesson, model: Classifier, layers: Sequence[int] | None, *, taught: bool) -> None:
    if not taught:  # it starts as the student did
        return
    count = model.config.num_hidden_layers
    if layers is not None:
        lesson.observer.note(
            f"The student's layers 0–{count - 1} start from the teacher's {_listed(layers)}."
        )
    elif lesson.plan.folder is None:
        lesson.observer.note(
            f"The student starts from random numbers ({count} layers, hidden size "
            f"{model.config.hidden_size}): without pretraining it learns only what these rows and the "
            "teacher show it."
        )
    loss = lesson.describe_loss(model.config)
    if loss.weights.hidden > 0:
        pairs = ", ".join(f"{one}←{other}" for one, other in loss.states.items())
        lesson.observer.note(
            f"Hidden states, student's ← teacher's: {pairs} (0 are the embeddings); of the last each row's "
            "first token, which is all that the classifier sees."
        )


def _listed(layers: Sequence[int]) -> str:
    return ", ".join(map(str, layers))


def _train(
    lesson: Lesson,
    model: Classifier,
    targets: Targets | None,
    num_epochs: int,
    work: Path,
    *,
    epochs_before: int,
) -> TrainingResult:
    """One step; its epochs are told as those of the whole training, after ``epochs_before``."""

    def tell(progress: "TrainingProgress") -> None:
        epoch = progress.epoch + epochs_before
        lesson.observer.training(replace(progress, epoch=epoch, num_epochs=lesson.options.num_epochs))

    options, start = lesson.options, replace(lesson.start, config=model.config)
    config = make_training_config(options, start).model_copy(update={"num_epochs": num_epochs})
    frozen = freeze_(model, Freezing())
    labelled = lesson.labelled
    if model.new_parameters and labelled.labels is not None:
        start_at_base_rates_(model, labelled.labels)
    with _objective(lesson, model, targets) as objective:
        outcome = train_(
            model,
            labelled if targets is None else lesson.train,
            lesson.validation,
            config,
            work_folder=work,
            resume=options.resume,
            device=start.device,
            on_progress=tell,
            on_resume=telling_resumed(lesson.observer, epochs_before),
            objective=objective,
        )
    return describe_training(model, frozen, outcome, config, start.device)


@contextmanager
def _objective(lesson: Lesson, model: Classifier, targets: Targets | None) -> Iterator["Objective | None"]:
    """What ``model`` is to learn; ``None`` is the loss against labels that training has anyway."""
    if targets is None:
        yield None
        return
    loss, labels = lesson.describe_loss(model.config), lesson.train.labels
    assert labels is not None
    with watched(model, loss.student_points) as seen:
        yield Distillation(
            loss,
            model.task,
            seen,
            targets,
            labels,
            num_labelled=lesson.num_labelled,
            widths=(model.config.hidden_size, lesson.teacher.config.hidden_size),
            first_only=model.config.reads_first_token_only,
            seed=lesson.options.seed,
            device=lesson.start.device,
        )


def _join(parts: Sequence[TrainingResult]) -> TrainingResult:
    """One account of several steps, epochs counted on from step to step."""
    last, before = parts[-1], [epoch for part in parts[:-1] for epoch in part.epochs]
    if not before:
        return last
    epochs = [epoch for part in parts for epoch in part.epochs]
    seconds = sum(part.seconds for part in parts)
    rows = sum(part.rows_per_s * part.seconds for part in parts)
    return last.model_copy(
        update={
            "epochs": tuple(
                one.model_copy(update={"epoch": number}) for number, one in enumerate(epochs, start=1)
            ),
            "best_epoch": len(before) + last.best_epoch,
            "seconds": seconds,
            "rows_per_s": rows / max(seconds, 1e-9),
        }
    )
