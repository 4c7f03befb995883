import pytest

from encoder.errors import ConfigError, DataError
from encoder.labels import LabelReading, infer_reading, parse_number, tidy_cell


def kind(*cells: str | tuple[str, ...]) -> str:
    return infer_reading(cells).kind


def test_the_kind_of_task_follows_from_the_labels() -> None:
    assert kind("neg", "pos", "pos") == "single_label"
    assert kind("0", "1", "10") == "single_label"
    assert kind("1.0", "2.0") == "single_label"
    assert kind("2.5", "3", "4.0") == "regression"
    assert kind("-.5", "1e-3", "+2.") == "regression"
    assert kind(("a", "b"), ()) == "multi_label"
    assert kind("['a', 'b']", "[]") == "multi_label"
    assert kind('["a"]', '["b"]') == "multi_label"


@pytest.mark.parametrize("mark", ["|", ";", ","])
def test_repeated_names_joined_by_a_separator_are_several_labels(mark: str) -> None:
    reading = infer_reading(["joy", "anger", f"joy{mark}anger", f"joy{mark} fear", "fear"])
    assert reading.kind == "multi_label"
    assert reading.separator == mark
    assert f"join names with {mark!r}" in reading.why
    assert reading.names(f"joy{mark} fear") == ("joy", "fear")


@pytest.mark.parametrize("labels", [("a|b", "c"), ("news|sports", "tech|phones"), ("Q&A, forum", "Blog")])
def test_a_mark_that_is_part_of_a_name_separates_nothing(labels: tuple[str, ...]) -> None:
    reading = infer_reading(labels)
    assert reading.kind == "single_label"
    assert "is part of a name" in reading.why


@pytest.mark.parametrize("labels", [("a|x", "a|y", "b|x", "b|y"), ("yes", "no", "yes, please", "no, thanks")])
def test_a_mark_that_may_be_either_is_refused_with_the_options(labels: tuple[str, ...]) -> None:
    with pytest.raises(
        DataError, match=r"one name or several joined by .*--task single_label.*--label-separator"
    ):
        infer_reading(labels)
    assert infer_reading(labels, kind="single_label").kind == "single_label"
    assert infer_reading(labels, kind="multi_label").separator in ("|", ",")


def test_the_options_override_the_evidence() -> None:
    assert infer_reading(["1", "2"], kind="regression").kind == "regression"
    assert infer_reading(["2.5", "3.5"], kind="single_label").kind == "single_label"
    assert infer_reading(["a/b", "a"], separator="/") == LabelReading(
        "multi_label", "label names are separated by '/' (--label-separator)", "/"
    )
    with pytest.raises(ConfigError, match="--label-separator '/' needs --task multi_label"):
        infer_reading(["a"], kind="single_label", separator="/")


def test_a_separator_inside_a_known_name_separates_nothing() -> None:
    assert (
        infer_reading(["Books, music", "Film"], kind="multi_label", known=["Books, music", "Film"]).separator
        is None
    )


def test_a_few_words_among_fractions_do_not_change_the_task() -> None:
    assert kind(*["0.5", "1.5", "2", "3"] * 5, "n/a") == "regression"
    with pytest.raises(ValueError, match="label 'n/a' is not a number"):
        parse_number("n/a")


@pytest.mark.parametrize("word", ["nan", "-inf", "Infinity", "n/a"])
def test_many_words_among_different_fractions_are_broken_numbers_and_no_classes(word: str) -> None:
    assert kind(*[f"{number / 7:.3f}" for number in range(48)], *[word] * 12) == "regression"
    assert kind(*[f"{number / 7:.3f}" for number in range(12)], *["joy", "fear"] * 24) == "single_label"


def test_a_few_fractions_with_what_is_not_finite_are_numbers_but_with_a_word_names() -> None:
    assert kind(*["0.5", "1.5", "nan"] * 5) == "regression"
    assert kind(*["1.5", "2.5", "beta"] * 5) == "single_label"


@pytest.mark.parametrize("label", ["nan", "inf", "-Infinity", "1_000", "1,5", "0x1", "", "٣"])
def test_what_is_no_plain_finite_number_is_no_regression_label(label: str) -> None:
    with pytest.raises(ValueError, match="is not a number"):
        parse_number(label)


def test_an_overflowing_number_is_no_regression_label() -> None:
    with pytest.raises(ValueError, match="too large"):
        parse_number("1e999")


def test_decimal_commas_are_no_classes() -> None:
    with pytest.raises(DataError, match="such as '1,5' look like numbers with a decimal comma"):
        infer_reading(["1,5", "2,5", "3"])


def test_whole_numbers_with_an_exponent_may_be_either() -> None:
    with pytest.raises(DataError, match="such as '1e3' are whole numbers with an exponent: give --task"):
        infer_reading(["1e3", "2", "3"])
    assert infer_reading(["1e-3", "2"]).kind == "regression"


def test_as_many_labels_as_rows_are_refused() -> None:
    with pytest.raises(DataError, match=r"looks like no column of labels.*--label-column"):
        infer_reading([f"I said {number}" for number in range(30)])
    with pytest.raises(DataError, match=r"30 different whole numbers in 30 rows.*--task regression"):
        infer_reading([str(number) for number in range(30)])


def test_zeros_and_ones_for_each_label_are_refused() -> None:
    with pytest.raises(DataError, match="a list of 3 zeros and ones: write the names"):
        infer_reading([("0", "1", "0"), ("1", "1", "0")])


def test_lists_and_single_labels_do_not_mix() -> None:
    with pytest.raises(DataError, match="mixes lists and single labels, such as 'b'"):
        infer_reading([("a",), "b"])


def test_unsound_cells_are_named() -> None:
    with pytest.raises(ValueError, match=r"label 'a\|\|b' has an empty name beside a '\|'"):
        LabelReading("multi_label", "", "|").names("a||b")
    with pytest.raises(ValueError, match=r"2 labels \('a', 'b'\), a single-label task has one a row"):
        LabelReading("single_label", "").names(("a", "b"))
    with pytest.raises(ValueError, match="is not a list such as"):
        LabelReading("multi_label", "", bracketed=True).names("[a, b]")


def test_cells_of_all_formats_are_tidied() -> None:
    assert [tidy_cell(value) for value in ("NA", "null", 3, 2.5, True, False)] == [
        "NA",
        "null",
        "3",
        "2.5",
        "true",
        "false",
    ]
    assert [tidy_cell(value) for value in ("", "  ", None, float("nan"))] == [None] * 4
    assert tidy_cell([]) == ()
    assert tidy_cell([0, 2], ["a", "b", "c"]) == ("a", "c")
    assert [tidy_cell(value, ["a", "b"]) for value in (1, -1)] == ["b", None]
    with pytest.raises(ValueError, match="label 2 is outside the 2 names"):
        tidy_cell(2, ["a", "b"])
