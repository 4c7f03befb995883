"""Two models on the same rows: by how much one is better, and whether that is more than chance."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from compress.uncertainty import McNemar, ScoreDifference, mcnemar, rows_right, score_difference
from encoder.errors import ConfigError
from encoder.labels import list_labels
from encoder.metrics import LOWER_IS_BETTER, main_metric, score
from encoder.model_folder import read_task, resolve_model
from encoder.task import Task, in_words
from recipes.observer import Observer, Silent
from recipes.result import Against, hash_model, read_result, without_nan
from recipes.scoring import FineTuned, Scored, find_logits, look_at, tokenize

if TYPE_CHECKING:
    from encoder.data import TaskData

# A difference that chance would make more rarely than this is called one.
SIGNIFICANT = 0.05
# Of several splits that were scored, the first of these is compared on.
SPLITS = ("test", "validation", "train")


def find_parent(folder: Path) -> str | None:
    """The classifier that the model in ``folder`` was made from, if it is still there as it was.

    Only one with the same labels counts: the encoder before a fine-tuning has none.
    """
    result = read_result(folder)
    if result is None or result.parent is None:
        return None
    parent = Path(result.parent.source).expanduser()
    if not (parent / "config.json").is_file() or hash_model(parent) != result.parent.sha256:
        return None
    task, own = read_task(parent), read_task(folder)
    return str(parent) if task is not None and own is not None and own.has_labels_of(task) else None


def check_other(source: str, task: Task) -> FineTuned:
    """The model ``source``, which must have the labels of ``task``, in whatever order.

    Raises:
        ConfigError: it has others. CheckpointError: it is no model.
    """
    folder = resolve_model(source, exported=True)
    other = read_task(folder)
    if other is None:
        raise ConfigError(f"--against {source}: an encoder without a classifier; there is nothing to compare")
    if not other.has_labels_of(task):
        raise ConfigError(
            f"--against {source}: a model for another task, {_describe(other)}; expected {_describe(task)}"
        )
    return look_at(source, folder)


def find_comparable(source: str, folder: Path, task: Task) -> FineTuned | None:
    """The model ``source`` in ``folder``, if it is a classifier with the labels of ``task``.

    A run that makes a model of it asks before its work, and afterwards gives it to ``score_against``.
    """
    other = read_task(folder)
    return look_at(source, folder) if other is not None and other.has_labels_of(task) else None


def score_against(
    other: FineTuned | None,
    data: "TaskData",
    scored: Mapping[str, Scored],
    *,
    device: str,
    observer: Observer,
    threads: int | None = None,
) -> Against | None:
    """The model ``other`` beside the run's own, whose splits are ``scored``: on test, else on validation.

    ``other`` reads the texts with its own tokenizer, cut where it was made to cut them. ``None`` where there
    is nothing to compare.
    """
    split = next((name for name in SPLITS if name in scored), None)
    if other is None or split is None:
        return None
    task, labels, logits = data.task, data.labels(split), scored[split].logits
    # What is cut was said of the run's own model already.
    tokenized = tokenize(data, other.tokenizer, max_length=other.max_length, names=[split], observer=Silent())
    observer.stage(f"Scoring the {split} rows with {other.source}")
    rows = tokenized.rows[split]
    theirs = find_logits(other, rows, device=device, threads=threads, observer=Silent())
    if task.labels:  # in the order of this run's model
        theirs = theirs[:, [other.task.labels.index(label) for label in task.labels]]
    return describe_against(other, split, task, theirs, logits, labels)


def describe_against(
    other: FineTuned,
    split: str,
    task: Task,
    theirs: NDArray[np.float32],
    logits: NDArray[np.float32],
    labels: NDArray[np.generic],
) -> Against:
    """``logits`` beside ``theirs``, which the model ``other`` gave the same rows; [R, C] in one order."""
    difference, test, verdict = compare_logits(task, theirs, logits, labels, other.source)
    return Against(
        source=other.source,
        sha256=hash_model(other.folder),
        split=split,
        scores=without_nan(score(task, theirs, labels)),
        difference=difference,
        mcnemar=test,
        verdict=verdict,
    )


def compare_logits(
    task: Task,
    theirs: NDArray[np.float32],
    logits: NDArray[np.float32],
    labels: NDArray[np.generic],
    source: str,
) -> tuple[ScoreDifference | None, McNemar | None, str]:
    """How much better ``logits`` are than ``theirs``, both [R, C], the exact test, and what may be claimed.

    ``source`` is what the verdict calls the other model. The difference is ``None`` where it is not defined,
    the test for regression.
    """
    difference = score_difference(task, theirs, logits, labels, metric=main_metric(task))
    test = None
    if task.kind != "regression":
        test = mcnemar(rows_right(task, logits, labels), rows_right(task, theirs, labels))
    known = np.isfinite([difference.low, difference.high]).all()
    return difference if known else None, test, judge(difference, test, source)


def judge(difference: ScoreDifference, test: McNemar | None, source: str) -> str:
    """What may be claimed. Where the metric counts right rows the exact test decides, else the interval."""
    rows = f"{difference.rows:,} row{'' if difference.rows == 1 else 's'}"
    if not np.isfinite([difference.difference, difference.low, difference.high]).all():
        return f"cannot be compared with {source}: the {difference.metric} of these rows is not defined"
    if difference.metric == "accuracy" and test is not None:
        chance = test.p_value >= SIGNIFICANT
    else:
        chance = difference.is_noise
    if difference.difference == 0 or chance:
        return f"no difference from {source} that {rows} can show"
    better = (difference.difference > 0) != (difference.metric in LOWER_IS_BETTER)
    return f"{'better' if better else 'worse'} than {source}, more than chance explains on {rows}"


def _describe(task: Task) -> str:
    labels = f" with {list_labels(task.labels)}"
    return f"{in_words(task.kind)}{labels if task.labels else ''}"
