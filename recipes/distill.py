"""Teach a smaller model what a fine-tuned one knows: a `DistillConfig` in, a model folder, its `Result` out.

All that is cheap comes first: a wrong option, a label or a tokenizer that does not fit ends the run before
anything is computed. The folder appears under its name only when it is complete.
"""

import hashlib
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from compress.size import Size
from encoder.files import write_atomic
from encoder.rows import TokenizedRows
from recipes.against import SPLITS, compare_logits, describe_against
from recipes.distill_config import DistillConfig
from recipes.distill_inputs import check_files, prepare, read_all
from recipes.distill_result import ControlResult, DistillResult, TeacherResult
from recipes.distill_student import check_layers
from recipes.first_look import look_first
from recipes.frozen_storage import place_on_disk
from recipes.observer import Observer, Recorder, Silent, counting
from recipes.result import RUN_FILE, Result
from recipes.resuming import claim, finish
from recipes.scoring import FineTuned, Scored, Splits, choose_precision, score_split
from recipes.side_by_side import BothLatencies, measure_in_turns
from recipes.trained import make_result, score_and_save
from recipes.training_inputs import TrainingInputs, tokenize_all

if TYPE_CHECKING:
    from compress.teacher import Targets
    from encoder.model import Classifier
    from recipes.distill_training import Lesson, Taught

# Options that are compared by the content of what they name.
FREE_TO_CHANGE = ("student", "unlabeled", "control")


def distill(config: DistillConfig, observer: Observer | None = None) -> Result:
    """Look at everything, let the teacher answer once, train student and control, score, save, measure.

    With ``resume`` a run of the same options goes on where it was interrupted; one that is finished is
    returned as it is. The teacher's answers are computed again then: they are kept for one run only.

    Raises:
        ConfigError, DataError, CheckpointError: before any training, with all that is wrong of a kind.
    """
    started = time.perf_counter()
    recorder = Recorder(observer or Silent())
    folder, finished = look_first(
        "distill",
        config,
        recorder,
        check_shape=lambda shape: check_layers(config, shape),
        further=lambda: check_files(config),
        needs_classifier=True,
    )
    if finished is not None:
        return finished
    found, plan, inputs, unlabeled = read_all(config, recorder)
    splits = tokenize_all(inputs, recorder)
    lesson = prepare(config, found, plan, inputs, splits, unlabeled, recorder)
    on_disk, needed = _place_targets(lesson)
    content = hashlib.sha256((inputs.parent.sha256 + plan.sha256).encode()).hexdigest()
    data = hashlib.sha256((inputs.data.fingerprint + repr(unlabeled)).encode()).hexdigest()
    work = claim(folder, config, model=content, data=data, free=FREE_TO_CHANGE)
    teacher = _score(lesson.teacher, splits, inputs.start.device, "the teacher", recorder)
    before = time.perf_counter()
    with closing(ask_teacher(lesson, work if on_disk else None)) as targets:
        seconds = time.perf_counter() - before
        student = _teach(lesson, targets, work / "student")
    done = _Done(found, lesson, inputs, splits, student, teacher, seconds, needed, on_disk)
    control = _train_control(done, work / "control") if config.control else None
    result = _finish(done, control, folder.work, recorder, started)
    write_atomic(folder.work / RUN_FILE, result.to_json())
    finish(folder)
    return result


def _place_targets(lesson: "Lesson") -> tuple[bool, int]:
    """Whether what the teacher makes of the rows goes to disk, and how many bytes it is."""
    from compress.teacher import target_bytes

    precision = choose_precision(lesson.options.precision, lesson.start.device)
    points = lesson.teacher_points
    needed = target_bytes(lesson.train, lesson.teacher.config, points, precision)
    what = "What the teacher makes of the rows is computed once and takes"
    return needed > 0 and place_on_disk(lesson.options, needed, what, lesson.observer), needed


def ask_teacher(lesson: "Lesson", folder: Path | None) -> "Targets":
    """What the teacher makes of the training rows, in one pass; in files in ``folder``, if there is one."""
    from compress.teacher import compute_targets

    device = lesson.start.device
    precision = choose_precision(lesson.options.precision, device)
    lesson.observer.stage(f"The teacher answers, once, in {precision}")

    return compute_targets(
        lesson.teacher,
        lesson.train,
        lesson.teacher_points,
        precision=precision,
        device=device,
        folder=folder,
        on_rows=counting(len(lesson.train), lesson.observer),
    )


def _teach(lesson: "Lesson", targets: "Targets | None", work: Path) -> "Taught":
    from recipes.distill_training import teach

    return teach(lesson, targets, work)


def _score(
    model: "Classifier", splits: Splits, device: str, name: str, observer: Observer
) -> dict[str, Scored]:
    """The scores of ``model``, which the stages call ``name``, on validation and test."""
    scored = {}
    for split in ("validation", "test"):
        if split in splits.rows:
            observer.stage(f"Scoring the {split} rows with {name}")
            scored[split] = score_split(model, splits.rows[split], device=device, observer=observer)
    return scored


@dataclass(frozen=True)
class _Done:
    """A student that is trained, and all that led to it. ``teacher`` are its scores by split."""

    found: FineTuned
    lesson: "Lesson"
    inputs: TrainingInputs
    splits: Splits
    student: "Taught"
    teacher: Mapping[str, Scored]
    target_seconds: float
    target_bytes: int
    on_disk: bool


def _train_control(done: _Done, work: Path) -> tuple["Taught", dict[str, Scored]]:
    lesson = done.lesson
    control = _teach(lesson, None, work)
    name = "the control"
    return control, _score(control.model, done.splits, lesson.start.device, name, lesson.observer)


def _finish(
    done: _Done,
    control: tuple["Taught", dict[str, Scored]] | None,
    work: Path,
    recorder: Recorder,
    started: float,
) -> Result:
    """Score, save and measure the student, beside its teacher and its control."""
    from compress.size import measure_size

    options, inputs, splits = done.lesson.options, done.inputs, done.splits
    trained = score_and_save(
        done.student.model,
        replace(inputs, before=None),
        splits,
        work,
        options.model_copy(update={"latency": False}),
        recorder,
        chosen_on_validation=len(done.student.training.epochs) > 1,
    )
    split = next(name for name in SPLITS if name in trained.scored)
    if split == "validation":
        recorder.note("Without test rows, all are compared on those that chose the epoch.")
    latency = _measure(done, work, splits.rows[split], recorder)
    task, labels, own = inputs.data.task, inputs.data.labels(split), trained.scored[split].logits
    teacher = describe_against(done.found, split, task, done.teacher[split].logits, own, labels)
    trained = replace(trained, against=teacher, latency=latency.after)
    teacher_size = measure_size(done.lesson.teacher, inputs.start.folder)
    return make_result(
        "distill",
        options,
        inputs,
        splits,
        done.student.training,
        trained,
        recorder,
        seconds=time.perf_counter() - started,
        distillation=_describe(done, trained.scored, control, split, latency, teacher_size),
    )


def _measure(done: _Done, work: Path, rows: TokenizedRows, observer: Observer) -> BothLatencies:
    options = done.lesson.options
    if not options.latency:
        return BothLatencies()
    observer.stage("Measuring latency, in turns with the teacher")
    parent = done.inputs.start.folder
    return measure_in_turns(parent, work, rows, threads=options.threads, observer=observer)


def _describe(
    done: _Done,
    scored: Mapping[str, Scored],
    control: tuple["Taught", dict[str, Scored]] | None,
    split: str,
    latency: BothLatencies,
    teacher_size: Size,
) -> DistillResult:
    lesson, student = done.lesson, done.student
    weights, loss = lesson.options.weights, student.loss
    return DistillResult(
        init_layers=student.layers,
        sizes=lesson.plan.sizes,
        weights={name: weight for name, weight in weights.items() if weight},
        temperature=loss.temperature,
        hidden_loss=loss.hidden_loss,
        states=loss.pairs,
        relation_heads=loss.num_relation_heads if weights["relations"] else None,
        unlabeled_rows=len(lesson.train) - lesson.num_labelled,
        target_seconds=done.target_seconds,
        target_bytes=done.target_bytes,
        on_disk=done.on_disk,
        teacher=TeacherResult(
            scores={name: one.scores for name, one in done.teacher.items()},
            intervals={name: one.interval for name, one in done.teacher.items() if one.interval is not None},
            num_hidden_layers=lesson.teacher.config.num_hidden_layers,
            size=teacher_size,
            latency=latency.before,
        ),
        agreement=_agreements(done, scored),
        control=None if control is None else _describe_control(done, scored, *control, split),
        speedups=latency.speedups,
    )


def _agreements(done: _Done, scored: Mapping[str, Scored]) -> dict[str, float | None]:
    from compress.uncertainty import agreement

    task = done.inputs.data.task
    return {name: agreement(task, one.logits, done.teacher[name].logits) for name, one in scored.items()}


def _describe_control(
    done: _Done, scored: Mapping[str, Scored], control: "Taught", its: Mapping[str, Scored], split: str
) -> ControlResult:
    task, labels = done.inputs.data.task, done.inputs.data.labels(split)
    difference, test, verdict = compare_logits(
        task, its[split].logits, scored[split].logits, labels, "the control"
    )
    return ControlResult(
        scores={name: one.scores for name, one in its.items()},
        intervals={name: one.interval for name, one in its.items() if one.interval is not None},
        agreement=_agreements(done, its),
        split=split,
        difference=difference,
        mcnemar=test,
        verdict=verdict,
        seconds=control.training.seconds,
    )
