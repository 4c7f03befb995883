"""Claims about what a measurement leaves behind."""

import numpy as np

from encoder.rows import TokenizedRows
from encoder.tokenizer import EncodingStats
from recipes.measurements import BenchResult, describe_texts
from tests.results import make_bench, make_ratio


def test_histogram_counts_every_row_at_the_power_of_two_that_holds_it():
    lengths = [1, 2, 3, 4, 5, 8, 9, 512]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    rows = TokenizedRows(np.zeros(offsets[-1], np.int32), np.zeros(offsets[-1], np.int8), offsets)
    stats = EncodingStats(rows=8, rows_cut=1, tokens=544, tokens_lost=9, tokens_unknown=0)
    texts = describe_texts("data", "test", rows, stats)
    assert texts.histogram == {1: 1, 2: 1, 4: 2, 8: 2, 16: 1, 512: 1}
    assert (texts.median_tokens, texts.max_tokens) == (4.5, 512)
    assert (texts.rows_cut, texts.tokens_lost) == (1, 9)


def test_run_json_is_read_back_as_it_was():
    result = make_bench((("a", "a"), ("b", "b")), ratios=[make_ratio()])
    assert BenchResult.model_validate_json(result.to_json()) == result
