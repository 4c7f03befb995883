"""Claims about the rows that a pruning looks at."""

import numpy as np
import pytest

from encoder.rows import TokenizedRows
from recipes.pruning_inputs import PruningInputs, limit_tokens
from recipes.scoring import Splits


def make_rows(lengths):
    tokens = sum(lengths)
    return TokenizedRows(
        input_ids=np.arange(tokens, dtype=np.int32),
        token_type_ids=np.zeros(tokens, np.int8),
        offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        labels=np.zeros(len(lengths), np.int64),
    )


@pytest.mark.parametrize(("most", "rows"), [(100, 4), (12, 4), (11, 3), (7, 2), (6, 1), (1, 1)])
def test_rows_end_before_they_have_too_many_tokens_but_one_stays(most, rows):
    assert len(limit_tokens(make_rows([4, 3, 2, 3]), most)) == rows


def test_rows_are_drawn_from_the_training_split_and_more_hold_the_fewer():
    splits = Splits({"train": make_rows([1] * 50), "test": make_rows([2] * 9)}, {})
    inputs = PruningInputs(None, None, None, splits, None, {})
    few, many, other = (
        inputs.draw_training_rows(number, seed).input_ids.tolist()
        for number, seed in ((5, 0), (99, 0), (5, 1))
    )
    assert many[:5] == few != other
    assert sorted(many) == list(range(50))
    assert inputs.reported == "test"
