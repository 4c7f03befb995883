import random
from collections import Counter

import pytest

from encoder.label_names import fold, settle_spellings, sort_names, unknown_label
from encoder.labels import list_labels


def test_whole_numbers_are_sorted_by_value() -> None:
    assert sort_names(["10", "2", "-1", "1"]) == ["-1", "1", "2", "10"]
    assert sort_names(["10", "2", "b"]) == ["10", "2", "b"]


def test_case_spaces_unicode_form_and_leading_zeros_do_not_make_another_label() -> None:
    assert len({fold(name) for name in ("Café ", "cafe\u0301", "CAFÉ")}) == 1
    assert fold("a\u200bb\ufeff") == fold("ab") != fold("a b")
    assert fold("01") == fold("1") != fold("10")
    assert fold("a  b") == fold("a b") != fold("ab")


def test_the_message_names_the_labels_and_the_one_meant() -> None:
    message = "label 'pos ' is none of the labels of train; did you mean 'pos'?"
    assert unknown_label("pos ", ["neg", "pos"], "of train") == message
    assert list_labels(['food, "drink"', "a"]) == "'food, \"drink\"', 'a'"
    assert list_labels([str(number) for number in range(30)]).endswith("'9', … (30 in all)")


def test_a_variant_is_refused_and_the_commonest_spelling_in_train_is_meant() -> None:
    counts = {"train": Counter({"spam": 5, "Spam": 2, "ham": 3}), "test": Counter({"Spam": 50, " ham": 1})}
    settled = settle_spellings(counts, [], "refuse")
    assert settled.refused == {"Spam": "spam", " ham": "ham"}
    assert settled.accepted == {"spam": "spam", "ham": "ham"}


def test_variants_are_merged_or_kept_as_asked() -> None:
    counts = {"train": Counter({"spam": 5, "Spam": 2})}
    merged = settle_spellings(counts, [], "merge")
    assert merged.accepted == {"spam": "spam", "Spam": "spam"}
    assert merged.notes == ("label 'Spam' (2 rows) is taken for 'spam'",)
    assert settle_spellings(counts, [], "keep").accepted == {"spam": "spam", "Spam": "Spam"}


def test_spaces_around_every_use_of_a_label_are_taken_off_and_said() -> None:
    settled = settle_spellings({"train": Counter({" pos": 3, " neg": 2})}, [], "refuse")
    assert settled.accepted == {" pos": "pos", " neg": "neg"}
    assert "label ' neg' is read as 'neg'" in settled.notes


def test_whole_numbers_with_a_point_go_by_the_whole_number() -> None:
    settled = settle_spellings({"train": Counter({"1.0": 3, "2": 2, "10.": 1})}, [], "refuse")
    assert settled.accepted == {"1.0": "1", "2": "2", "10.": "10"}
    assert "read as whole numbers" in settled.notes[0]


def test_versions_keep_their_point() -> None:
    settled = settle_spellings({"train": Counter({"1.0": 3, "latest": 2})}, [], "refuse")
    assert settled.accepted == {"1.0": "1.0", "latest": "latest"}


def test_the_names_of_a_model_win_over_common_spellings() -> None:
    settled = settle_spellings({"test": Counter({"Spam": 9, "ham": 1})}, ["spam", "ham"], "refuse")
    assert settled.refused == {"Spam": "spam"}
    assert (
        settle_spellings({"test": Counter({"1.0": 9, "0.0": 1})}, ["0", "1"], "refuse").accepted["1.0"] == "1"
    )


@pytest.mark.parametrize("seed", range(50))
@pytest.mark.parametrize("variants", ["refuse", "merge", "keep"])
def test_each_spelling_is_accepted_or_refused_and_merging_refuses_none(seed: int, variants: str) -> None:
    draw = random.Random(seed)
    alphabet = ["a", "A", "a ", " a", "b", "B ", "1", "01", "1.0", "2.0", "2", "c"]
    counts = {split: Counter(draw.choices(alphabet, k=6)) for split in ("train", "test")}
    settled = settle_spellings(counts, [], variants)  # type: ignore[arg-type]
    occurring = {name for counter in counts.values() for name in counter}
    assert set(settled.accepted) | set(settled.refused) == occurring
    assert not set(settled.accepted) & set(settled.refused)
    if variants != "refuse":
        assert not settled.refused
    if variants == "merge":
        names = set(settled.accepted.values())
        assert len({fold(name) for name in names}) == len(names)
