import pytest

from encoder.columns import PAIR_COLUMNS, Columns, choose_columns
from encoder.errors import DataError


@pytest.mark.parametrize("label", ["label", "Labels", "CLASS", "target", "intent", "sentiment", "category"])
@pytest.mark.parametrize("text", ["text", "Sentence", "review", "content", "question", "document"])
def test_columns_are_found_by_convention_in_any_case(text: str, label: str) -> None:
    assert choose_columns(["id", label, text], where="f.csv") == Columns(text, None, label)


@pytest.mark.parametrize(("first", "second"), PAIR_COLUMNS)
def test_pairs_are_found_by_convention(first: str, second: str) -> None:
    assert choose_columns(["idx", second, first.upper(), "label"], where="f.csv") == Columns(
        first.upper(), second, "label"
    )


def test_a_pair_goes_before_a_single_text() -> None:
    assert choose_columns(["sentence1", "sentence2", "text", "label"], where="f").text_pair == "sentence2"


def test_the_option_wins_and_makes_no_pair_by_itself() -> None:
    columns = choose_columns(["text_a", "text_b", "y"], where="f", text="text_a", label="y")
    assert columns == Columns("text_a", None, "y")


def test_all_ambiguities_are_refused_at_once_with_the_columns() -> None:
    with pytest.raises(DataError) as caught:
        choose_columns(["text", "content", "label", "class"], where="f.csv")
    message = str(caught.value)
    assert "f.csv: 'text' and 'content' could each be the text: choose with --text-column" in message
    assert "f.csv: 'label' and 'class' could each be the label: choose with --label-column" in message
    assert "the columns are: text, content, label, class" in message


def test_two_possible_pairs_are_refused() -> None:
    with pytest.raises(DataError, match=r"more than one pair of texts \(text_a/text_b; premise/hypothesis\)"):
        choose_columns(["text_a", "text_b", "premise", "hypothesis", "label"], where="f")


def test_a_mistyped_option_is_answered_with_the_column_meant() -> None:
    with pytest.raises(DataError, match=r"no column 'reveiw' \(--text-column\); did you mean 'review'\?"):
        choose_columns(["review", "stars"], where="f", text="reveiw", label="stars")


def test_no_known_name_says_which_would_do_and_that_the_header_may_be_missing() -> None:
    with pytest.raises(
        DataError, match=r"(?s)no column is called label, labels.*--label-column.*header line"
    ):
        choose_columns(["I loved it", "pos"], where="f")


def test_one_column_cannot_be_text_and_label() -> None:
    with pytest.raises(DataError, match="one column cannot be two things: text 'text', label 'text'"):
        choose_columns(["text", "label"], where="f", text="text", label="text")


def test_the_model_says_whether_pairs_are_wanted() -> None:
    with pytest.raises(DataError, match="the model takes pairs of texts"):
        choose_columns(["text", "label"], where="f", pair=True)
    with pytest.raises(DataError, match="the model takes a single text"):
        choose_columns(["text", "b", "label"], where="f", text_pair="b", pair=False)
    with pytest.raises(
        DataError, match=r"pairs of texts \('text_a' and 'text_b'\), and the model takes a single"
    ):
        choose_columns(["text_a", "text_b", "label"], where="f", pair=False)
    with pytest.raises(DataError, match=r"takes pairs of texts, and of texts there is only 'review'"):
        choose_columns(["review", "label"], where="f", pair=True)
    assert choose_columns(["question", "answer"], where="f", pair=False, need_label=False) == Columns(
        "question"
    )


def test_a_score_is_the_label_unless_there_is_another() -> None:
    found = choose_columns(["sentence1", "sentence2", "score"], where="f")
    assert found == Columns("sentence1", "sentence2", "score")
    assert choose_columns(["text", "score", "label"], where="f").label == "label"
