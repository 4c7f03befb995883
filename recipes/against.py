"""Two models on the same rows: by how much one is better, and whether that is more than chance."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from compress.uncertainty import McNemar, ScoreDifference, mcnemar, rows_right, score_difference
from encoder.errors import ConfigError
from encoder.metrics import LOWER_IS_BETTER, main_metric, score
from encoder.task import Task
from recipes.observer import Observer, Silent
from recipes.result import Against, hash_model, read_result, without_nan
from recipes.scoring import tokenize

if TYPE_CHECKING:
    from encoder.data import TaskData

# A difference that chance would make more rarely than this is called one.
SIGNIFICANT = 0.05


def find_parent(folder: Path) -> str | None:
    """The classifier that the model in ``folder`` was made from, if it is still there as it was.

    Only one with the same labels counts: the encoder before a fine-tuning has none.
    """
    from encoder.checkpoint import read_task

    result = read_result(folder)
    if result is None or result.parent is None:
        return None
    parent = Path(result.parent.source).expanduser()
    if not (parent / "config.json").is_file() or hash_model(parent) != result.parent.sha256:
        return None
    task, own = read_task(parent), read_task(folder)
    return str(parent) if task is not None and own is not None and own.has_labels_of(task) else None


def check_other(source: str, task: Task) -> Path:
    """The folder of the model ``source``, which must have the labels of ``task``, in whatever order.

    Raises:
        ConfigError: it has others. CheckpointError: it is no classifier.
    """
    from encoder.checkpoint import read_task, resolve_model

    folder = resolve_model(source)
    other = read_task(folder)
    if other is None:
        raise ConfigError(f"--against {source}: an encoder without a classifier; there is nothing to compare")
    if not other.has_labels_of(task):
        raise ConfigError(
            f"--against {source}: a model for another task, {_in_words(other)}; expected {_in_words(task)}"
        )
    return folder


def score_against(
    source: str,
    folder: Path,
    data: "TaskData",
    split: str,
    logits: NDArray[np.float32],
    *,
    device: str,
    observer: Observer,
) -> Against:
    """The model in ``folder`` on the rows of ``split``, beside the ``logits`` [R, C] of the run's model."""
    from encoder.checkpoint import load_classifier, read_tokenizer
    from encoder.prediction import predict_logits

    tokenizer, before, task = read_tokenizer(folder), read_result(folder), data.task
    max_length = before.model.max_length if before else tokenizer.max_length
    # What is cut was said of the run's own model already.
    rows = tokenize(data, tokenizer, max_length=max_length, names=[split], observer=Silent()).rows[split]
    observer.stage(f"Scoring the {split} rows with {source}")
    model = load_classifier(folder)
    other = predict_logits(model.to(device), rows, device=device)
    if task.labels:  # in the order of this run's model
        other = other[:, [model.task.labels.index(label) for label in task.labels]]
    labels = data.labels(split)
    difference = score_difference(task, other, logits, labels, metric=main_metric(task))
    test = None
    if task.kind != "regression":
        test = mcnemar(rows_right(task, logits, labels), rows_right(task, other, labels))
    return Against(
        source=source,
        sha256=hash_model(folder),
        scores=without_nan(score(task, other, labels)),
        difference=difference if np.isfinite([difference.low, difference.high]).all() else None,
        mcnemar=test,
        verdict=judge(difference, test, source),
    )


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


def _in_words(task: Task) -> str:
    labels = f" with {', '.join(task.labels[:6])}{', …' if len(task.labels) > 6 else ''}"
    return f"{task.kind.replace('_', '-')}{labels if task.labels else ''}"
