"""How each class fares: what a score of all rows hides."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from compress.weighted_scores import predict
from encoder.task import Task
from recipes.part import Part


class ClassScores(Part):
    """One class, or one label of a multi-label task.

    ``rows`` have it, of ``predicted`` rows the model says so, and in ``right`` rows both are so.
    ``precision`` is ``None`` where nothing is predicted to be it, ``recall`` where no row has it, ``f1``
    where neither is.
    """

    label: str
    rows: int
    predicted: int
    right: int
    precision: float | None
    recall: float | None
    f1: float | None


class Confusion(Part):
    """So many rows of the class ``label`` were taken for ``predicted``."""

    label: str
    predicted: str
    rows: int


class PerClass(Part):
    """The classes of a split in the order of the logits, and the ``confusions`` between them, the most first.

    Only what occurs is a confusion, so that a thousand classes do not make a million numbers. A multi-label
    task has none: there a missing label is not taken for another.
    """

    classes: tuple[ClassScores, ...]
    confusions: tuple[Confusion, ...] = ()


def score_classes(
    task: Task, logits: NDArray[np.floating[Any]], labels: NDArray[np.generic]
) -> PerClass | None:
    """What ``logits`` [R, C] make of each class; ``None`` for regression, which has no classes."""
    if task.kind == "regression":
        return None
    C, found = task.num_outputs, predict(task, logits)
    if task.kind == "single_label":
        given = np.asarray(labels).astype(np.int64)
        matrix = np.bincount(given * C + found, minlength=C * C).reshape(C, C)  # [true, predicted]
        rows, predicted, right = matrix.sum(axis=1), matrix.sum(axis=0), matrix.diagonal()
        confusions = _confusions(task.labels, matrix)
    else:
        given = np.asarray(labels).astype(np.int64)  # [R, C]
        rows, predicted, right = given.sum(axis=0), found.sum(axis=0), (given * found).sum(axis=0)
        confusions = ()
    classes = (
        ClassScores(
            label=label,
            rows=int(has),
            predicted=int(said),
            right=int(both),
            precision=_share(both, said),
            recall=_share(both, has),
            f1=_share(2 * both, has + said),
        )
        for label, has, said, both in zip(task.labels, rows, predicted, right, strict=True)
    )
    return PerClass(classes=tuple(classes), confusions=confusions)


def _confusions(labels: tuple[str, ...], matrix: NDArray[np.int64]) -> tuple[Confusion, ...]:
    apart = matrix - np.diag(matrix.diagonal())
    places = sorted(np.argwhere(apart).tolist(), key=lambda place: -apart[place[0], place[1]])
    return tuple(
        Confusion(label=labels[true], predicted=labels[said], rows=int(apart[true, said]))
        for true, said in places
    )


def _share(part: np.integer[Any], whole: np.integer[Any]) -> float | None:
    return float(part / whole) if whole else None
