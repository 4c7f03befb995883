"""What a distillation starts from: a teacher and data, read and checked, and the texts without labels."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from encoder.errors import DataError, Problems
from encoder.model_folder import peek_config
from encoder.rows import TokenizedRows
from recipes.distill_config import DistillConfig
from recipes.distill_student import StudentPlan, plan_student
from recipes.observer import Observer
from recipes.scoring import FineTuned, Splits, describe_cut, describe_encoded, find_fine_tuned
from recipes.training_inputs import TrainingInputs, look_at_start, read_training_data

if TYPE_CHECKING:
    from recipes.distill_training import Lesson


@dataclass(frozen=True)
class Unlabeled:
    """Texts without labels, and their pairs where the task has pairs."""

    texts: tuple[str, ...]
    pairs: tuple[str, ...] | None


def read_all(
    config: DistillConfig, observer: Observer
) -> tuple[FineTuned, StudentPlan, TrainingInputs, Unlabeled | None]:
    """The teacher, looked at, what the student will be, and the data; nothing is computed."""
    start = look_at_start(config, observer)
    found = find_fine_tuned(config.model, config.max_length)
    start = replace(start, max_length=found.max_length)
    plan = plan_student(config, start, found.task)
    unlabeled = _read_unlabeled(config, found, observer)
    inputs = read_training_data(config, start, observer, task=found.task)
    return found, plan, inputs, unlabeled


def check_files(config: DistillConfig) -> None:
    """Refuse, before anything is read, a student or a file of texts that is not there.

    Raises:
        EncError: both, where both are missing.
    """
    problems = Problems()
    if config.student is not None:
        with problems.collected():
            peek_config(config.student)
    if config.unlabeled is not None and not config.unlabeled.exists():
        with problems.collected():
            raise DataError(f"--unlabeled {config.unlabeled}: no such file")
    problems.tell()


def _read_unlabeled(config: DistillConfig, found: FineTuned, observer: Observer) -> Unlabeled | None:
    from encoder.texts import read_texts

    if config.unlabeled is None:
        return None
    table = config.unlabeled.suffix.lower() != ".txt"
    read = read_texts(
        config.unlabeled,
        pair=found.task.pair,
        text_column=config.text_column if table else None,
        text_pair_column=config.text_pair_column if table else None,
        encoding=config.encoding,
    )
    for note in read.notes:
        observer.note(note)
    kept = [row for row, text in enumerate(read.texts) if text.strip()]
    if not kept:
        raise DataError(f"--unlabeled {config.unlabeled}: no texts in it")
    learnt = _learnt_of_them(config)
    observer.note(f"{len(kept):,} texts without labels are learnt from as well: the teacher's {learnt}.")
    pairs = None if read.pairs is None else tuple(read.pairs[row] for row in kept)
    return Unlabeled(tuple(read.texts[row] for row in kept), pairs)


def _learnt_of_them(config: DistillConfig) -> str:
    """What the student learns of rows that have no label."""
    names = {
        "soft": "answers",
        "hidden": "hidden states",
        "relations": "relations between tokens",
        "embeddings": "embeddings",
    }
    learnt = [name for loss, name in names.items() if config.weights[loss]]
    return " and ".join(filter(None, [", ".join(learnt[:-1]), learnt[-1]]))


def prepare(
    config: DistillConfig,
    found: FineTuned,
    plan: StudentPlan,
    inputs: TrainingInputs,
    splits: Splits,
    unlabeled: Unlabeled | None,
    observer: Observer,
) -> "Lesson":
    """The teacher loaded, and the rows to learn from, those without labels last."""
    from encoder.checkpoint import load_classifier
    from recipes.distill_training import Lesson

    train = splits.rows["train"]
    num_labelled = len(train)
    if unlabeled is not None:
        train = _append(train, _tokenize(unlabeled, found, observer))
    observer.stage(f"Loading the teacher {config.model}")
    teacher = load_classifier(found.folder).to(inputs.start.device)
    validation = splits.rows.get("validation")
    return Lesson(config, inputs.start, plan, teacher, train, num_labelled, validation, observer)


def _tokenize(unlabeled: Unlabeled, found: FineTuned, observer: Observer) -> TokenizedRows:
    from encoder.token_cache import encode_cached

    limit = found.max_length
    rows, stats = encode_cached(found.tokenizer, unlabeled.texts, unlabeled.pairs, max_length=limit)
    if stats.rows_cut:
        observer.note(describe_cut({"unlabeled": describe_encoded(stats)}, limit))
    return rows


def _append(rows: TokenizedRows, more: TokenizedRows) -> TokenizedRows:
    """``rows`` and then ``more``, which have no labels: theirs are zeros that nobody reads."""
    assert rows.labels is not None
    blank = np.zeros((len(more), *rows.labels.shape[1:]), dtype=rows.labels.dtype)
    return TokenizedRows(
        np.concatenate([rows.input_ids, more.input_ids]),
        np.concatenate([rows.token_type_ids, more.token_type_ids]),
        np.concatenate([rows.offsets, more.offsets[1:] + rows.offsets[-1]]),
        np.concatenate([rows.labels, blank]),
    )
