import random

import pytest

from encoder.splits import (
    Rows,
    content_key,
    cut_rows,
    fingerprint,
    first_by_hash,
    label_strata,
    overlap,
    repeats,
)


def rows(seed: int, count: int = 300) -> tuple[list[str], list[int]]:
    draw = random.Random(seed)
    texts = [f"text {draw.randrange(count * 2 // 3)}" for _ in range(count)]
    return [content_key(text) for text in texts], [hash(text) % 3 for text in texts]


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("fraction", [0.05, 0.1, 0.5])
def test_a_cut_keeps_equal_texts_together_and_takes_its_share_of_each_class(
    seed: int, fraction: float
) -> None:
    keys, labels = rows(seed)
    kept, cut = cut_rows(keys, labels, fraction)
    assert sorted(kept + cut) == list(range(len(keys)))
    assert not {keys[row] for row in kept} & {keys[row] for row in cut}
    for label in set(labels):
        share = sum(labels[row] == label for row in cut)
        assert abs(share - fraction * labels.count(label)) <= 2


@pytest.mark.parametrize("seed", range(10))
def test_a_cut_does_not_depend_on_the_order_of_rows(seed: int) -> None:
    keys, labels = rows(seed)
    order = list(range(len(keys)))
    random.Random(seed).shuffle(order)
    _, cut = cut_rows(keys, labels, 0.1)
    _, other = cut_rows([keys[row] for row in order], [labels[row] for row in order], 0.1)
    assert {keys[row] for row in cut} == {keys[order[row]] for row in other}
    assert len(cut) == len(other)


def test_few_rows_still_give_a_cut_and_leave_each_class_in_train() -> None:
    labels = [0, 0, 1, 1]
    kept, cut = cut_rows([content_key(str(row)) for row in range(4)], labels, 0.1)
    assert {labels[row] for row in kept} == {labels[row] for row in cut} == {0, 1}


def test_one_text_alone_is_never_cut() -> None:
    assert cut_rows([content_key("x")] * 5, [0] * 5, 0.5) == ([0, 1, 2, 3, 4], [])


def test_white_space_makes_no_other_text_and_a_pair_is_not_its_joined_text() -> None:
    assert content_key("a\n b ") == content_key("a b")
    assert content_key("a", "b") != content_key("a b") != content_key("ab")


def test_rows_are_kept_in_proportion_to_the_rarest_label_or_the_tenth_of_the_range() -> None:
    assert label_strata([(0, 1), (0,), (0, 2), (), (2, 0)], "multi_label") == [1, 0, 2, -1, 2]
    strata = label_strata([float(value) for value in range(100)], "regression")
    assert {strata.count(stratum) for stratum in strata} == {10} or len(set(strata)) == 10


def test_the_first_rows_by_hash_are_the_same_in_any_order() -> None:
    keys, labels = rows(0)
    order = list(range(len(keys)))[::-1]
    first = first_by_hash(keys, labels, 50)
    other = first_by_hash([keys[row] for row in order], [labels[row] for row in order], 50)
    assert first == sorted(first)
    assert sorted((keys[row], labels[row]) for row in first) == sorted(
        (keys[order[row]], labels[order[row]]) for row in other
    )


def test_repeats_and_overlaps_are_counted_with_their_conflicts() -> None:
    assert repeats(["a", "b", "a", "a"], [0, 0, 0, 1]) == (2, 1)
    assert overlap((["a", "b"], [0, 0]), (["a", "a", "c"], [0, 1, 0])) == (2, 1)


def test_the_fingerprint_changes_with_any_text_label_name_split_or_order() -> None:
    base = Rows(["a", "b"], None, [0, 1])
    prints = {
        fingerprint("single_label", names, splits)
        for names, splits in [
            (["x", "y"], {"train": base}),
            (["x", "z"], {"train": base}),
            (["x", "y"], {"test": base}),
            (["x", "y"], {"train": Rows(["b", "a"], None, [1, 0])}),
            (["x", "y"], {"train": Rows(["a", "b"], ["", ""], [0, 1])}),
            (["x", "y"], {"train": Rows(["a", "b"], None, [1, 1])}),
        ]
    }
    assert len(prints) == 6
    assert fingerprint("single_label", ["x", "y"], {"train": base}) in prints
