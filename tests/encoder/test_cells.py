import pytest

from encoder.cells import has_labels, read_text_cells, usable_cells
from encoder.columns import Columns
from encoder.reading import Table


def test_every_row_is_used_or_counted_with_its_reason() -> None:
    table = Table(
        "f.jsonl",
        {
            "a": ["x", None, "y", "z", 5, float("nan"), "w"],
            "b": ["x", "x", " ", "z", True, "x", "w"],
            "label": ["p", "p", "p", None, "q", "p", "q"],
        },
    )
    problems: list[str] = []
    cells = usable_cells(table, Columns("a", "b", "label"), problems)
    assert not problems
    assert (cells.texts, cells.pairs, cells.labels) == (["x", "5", "w"], ["x", "true", "w"], ["p", "q", "q"])
    assert [(drop.reason, drop.rows) for drop in cells.dropped] == [
        ("empty a", 2),
        ("empty b", 1),
        ("empty label", 1),
    ]
    assert cells.dropped[0].examples == ("f.jsonl: row 2", "f.jsonl: row 6")
    assert cells.where(2) == "f.jsonl: row 7"


def test_cells_that_are_no_text_or_no_label_are_all_problems() -> None:
    table = Table(
        "f.jsonl", {"text": ["a", ["b"], "\ud800", "d"], "label": [{}, "x", "y", [[1]]]}, [1, 2, 3, 5]
    )
    problems: list[str] = []
    usable_cells(table, Columns("text", None, "label"), problems)
    assert problems == [
        "f.jsonl:2: text is not text but list",
        "f.jsonl:3: text holds half of a surrogate pair, which is no character",
        "f.jsonl:1: a label that is an object",
        "f.jsonl:5: a list of labels that holds an empty label or another list",
    ]


@pytest.mark.parametrize("cell", [None, "", " ", float("nan"), -1, "-1"])
def test_a_column_of_empty_cells_or_minus_one_has_no_labels(cell: object) -> None:
    train = Table("train", {"label": ["a", 1, ["b"]]})
    assert not has_labels(Table("test", {"label": [cell, cell]}), "label", train)
    assert has_labels(Table("test", {"label": [cell, "a"]}), "label", train)


def test_an_empty_list_is_a_label_cell_and_minus_one_is_one_where_train_has_it() -> None:
    assert has_labels(Table("test", {"label": [[]]}), "label", None)
    assert has_labels(Table("test", {"label": ["-1"]}), "label", Table("train", {"label": ["-1", "1"]}))
    assert not has_labels(Table("test", {"text": ["a"]}), "label", None)


def test_a_class_column_used_as_text_gives_its_names() -> None:
    table = Table("hub", {"topic": [1, 0, None]}, class_names={"topic": ("a", "b")})
    assert read_text_cells(table, "topic", []) == ["b", "a", ""]
