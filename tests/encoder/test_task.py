import pytest
from pydantic import ValidationError

from encoder.task import Task


@pytest.mark.parametrize(
    ("kind", "labels", "message"),
    [
        ("regression", ("a",), "no labels"),
        ("single_label", ("a",), "at least 2"),
        ("multi_label", (), "at least 1"),
        ("single_label", ("a", "a"), "repeat"),
    ],
)
def test_labels_that_do_not_fit_the_kind_are_refused(kind, labels, message) -> None:
    with pytest.raises(ValidationError, match=message):
        Task(kind=kind, labels=labels)


def test_regression_has_one_output() -> None:
    assert Task(kind="regression").num_outputs == 1
    assert Task(kind="multi_label", labels=("a", "b", "c")).num_outputs == 3
