"""Claims about scores by class."""

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support

from encoder.task import Task
from recipes.class_scores import score_classes

LABELS = ("a", "b", "c", "d")


@pytest.mark.parametrize("kind", ["single_label", "multi_label"])
def test_scores_of_each_class_equal_sklearns(kind):
    draw = np.random.default_rng(0)
    logits = draw.normal(size=(200, 4)).astype(np.float32)
    if kind == "single_label":
        labels = np.where(draw.random(200) < 0.5, logits.argmax(1), draw.integers(0, 4, 200))
        predicted = logits.argmax(1)
    else:
        labels = (logits + draw.normal(size=(200, 4)) > 0).astype(np.int64)
        predicted = (logits > 0).astype(np.int64)
    found = score_classes(Task(kind=kind, labels=LABELS), logits, labels)
    expected = precision_recall_fscore_support(labels, predicted, labels=range(4), zero_division=0)
    for place, one in enumerate(found.classes):
        assert one.label == LABELS[place]
        got = (one.precision, one.recall, one.f1, one.rows)
        assert got == pytest.approx([values[place] for values in expected])


def test_confusions_with_the_right_rows_are_sklearns_matrix():
    draw = np.random.default_rng(1)
    logits, labels = draw.normal(size=(99, 4)), draw.integers(0, 4, 99)
    found = score_classes(Task(kind="single_label", labels=LABELS), logits, labels)
    matrix = np.diag([one.right for one in found.classes])
    for one in found.confusions:
        matrix[LABELS.index(one.label), LABELS.index(one.predicted)] = one.rows
    assert (matrix == confusion_matrix(labels, logits.argmax(1))).all()
    counts = [one.rows for one in found.confusions]
    assert counts == sorted(counts, reverse=True) and 0 not in counts


def test_what_is_not_defined_is_none():
    logits = np.array([[1.0, 0.0, 0.0, 0.0]])
    found = score_classes(Task(kind="single_label", labels=LABELS), logits, np.array([1]))
    a, b, c, _ = found.classes
    assert (a.precision, a.recall, a.f1) == (0.0, None, 0.0)
    assert (b.precision, b.recall) == (None, 0.0)
    assert (c.precision, c.recall, c.f1) == (None, None, None)
    assert score_classes(Task(kind="regression"), logits[:, :1], np.array([0.5])) is None


def test_run_json_of_a_fine_tuning_has_them(finetuned):
    saved = json.loads((Path(finetuned.output) / "run.json").read_text())
    assert list(saved["per_class"]) == list(saved["scores"])
    for split, scores in saved["scores"].items():
        classes = saved["per_class"][split]["classes"]
        assert [one["label"] for one in classes] == saved["model"]["labels"]
        right, rows = (sum(one[key] for one in classes) for key in ("right", "rows"))
        assert right / rows == pytest.approx(scores["accuracy"])
        assert sum(one["rows"] for one in saved["per_class"][split]["confusions"]) == rows - right
