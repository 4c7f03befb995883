"""Claims about which units stay."""

import numpy as np
import pytest

from compress.selection import count_kept, parse_kept, select_units
from encoder.errors import CompressionError

SCORES = [np.array([5.0, 1.0, 4.0]), np.array([0.1, 0.2, 9.0]), np.array([0.0, 0.0, 0.0])]


@pytest.mark.parametrize(
    ("total", "sparsity", "kept"), [(144, 0.4, 86), (12, 0.5, 6), (12, 0.0, 12), (7, 0.5, 4), (144, 0.999, 0)]
)
def test_share_is_rounded_to_whole_units(total, sparsity, kept):
    assert count_kept(total, sparsity) == kept


def test_global_scope_keeps_the_highest_scores_of_all():
    assert select_units(SCORES, 3) == [[0, 2], [2], []]


def test_minimum_per_layer_is_kept_by_its_best():
    assert select_units(SCORES, 4, min_per_layer=1) == [[0, 2], [2], [0]]


def test_layer_scope_takes_the_same_share_of_each():
    assert select_units(SCORES, 6, scope="layer") == [[0, 2], [1, 2], [0, 1]]
    assert sum(map(len, select_units(SCORES, 4, scope="layer"))) == 4


def test_layer_scope_follows_what_layers_have_left():
    scores = [np.arange(8.0), np.arange(4.0), np.array([])]
    assert [len(one) for one in select_units(scores, 6, scope="layer")] == [4, 2, 0]


@pytest.mark.parametrize("scope", ["global", "layer"])
@pytest.mark.parametrize("keep", range(10))
def test_exactly_so_many_stay(scope, keep):
    assert sum(map(len, select_units(SCORES, keep, scope=scope))) == keep


def test_minimum_that_cannot_be_met_is_refused():
    with pytest.raises(CompressionError, match="2 of 9 would stay, but at least 1 in each of 3"):
        select_units(SCORES, 2, min_per_layer=1)


def test_kept_units_are_read():
    present = [[0, 1, 2, 3], [0, 2], [0, 1, 2]]
    assert parse_kept("0:1,3; 2:0-1", present) == [[1, 3], [0, 2], [0, 1]]
    assert parse_kept("1:", present) == [[0, 1, 2, 3], [], [0, 1, 2]]


def test_all_mistakes_in_kept_units_are_told():
    with pytest.raises(CompressionError) as told:
        parse_kept("0:1;0:2;5:1;1:1;x", [[0, 1, 2], [0, 2]])
    lines = str(told.value).splitlines()
    assert lines == [
        "--keep: layer 0 is named twice",
        "--keep: no layer 5; the model has 2, counted from 0",
        "--keep: layer 1 has no 1; it has 0, 2 (numbered as before any pruning)",
        "--keep: 'x' is not LAYER:NUMBERS, as in '0:1,3;1:0-5;2:'",
    ]
    with pytest.raises(CompressionError, match="names no layer"):
        parse_kept(";", [[0]])


@pytest.mark.parametrize("part", ["0:2-1", "0:1-", "0:-1", "0:1 2", "0:1-2-3", "0:1x", ":1", "0:" + "1" * 40])
def test_what_is_no_list_of_numbers_keeps_nothing_by_accident(part):
    with pytest.raises(CompressionError, match=f"'{part}' is not LAYER:NUMBERS"):
        parse_kept(part, [[0, 1, 2]])


def test_long_ranges_of_units_that_are_not_there_are_told_in_short():
    with pytest.raises(CompressionError, match="--keep: layer 0 has no 3–99999; it has 0–2"):
        parse_kept("0:0-99999", [[0, 1, 2]])
