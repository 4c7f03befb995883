"""Claims about comparing two models' logits."""

import numpy as np
import pytest

from compress.parity import find_parity
from encoder.task import Task


@pytest.mark.parametrize(
    ("task", "agreement"),
    [
        (Task(kind="single_label", labels=("a", "b")), 2 / 3),
        (Task(kind="multi_label", labels=("a", "b")), 1 / 3),  # a row counts if all its labels are the same
        (Task(kind="regression"), None),
    ],
)
def test_rows_with_the_same_labels_are_counted(task, agreement):
    expected = np.array([[1.0, 2.0], [3.0, -1.0], [-1.0, 0.5]])
    found = np.array([[1.5, 2.0], [3.0, 1.0], [0.5, -1.0]])
    parity = find_parity(task, expected, found, padding=0.25)
    assert parity.max_difference == 2
    assert parity.agreement == (None if agreement is None else pytest.approx(agreement))
    assert (parity.rows, parity.padding) == (3, 0.25)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_no_number_has_no_difference(value):
    task = Task(kind="regression")
    assert find_parity(task, np.zeros((2, 1)), np.array([[0.0], [value]]), padding=0).max_difference is None
