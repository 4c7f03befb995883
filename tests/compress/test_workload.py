from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from compress import workload
from compress.workload import Workload, from_grid, from_rows
from encoder.errors import ConfigError
from encoder.rows import TokenizedRows


def test_a_grid_has_every_batch_size_with_every_length() -> None:
    grid = from_grid([1, 3], [4, 8], vocab_size=10, max_tokens=8)
    assert [str(case.shape) for case in grid.cases] == ["1x4", "3x4", "1x8", "3x8"]
    assert [case.tokens for case in grid.cases] == [4, 12, 8, 24]
    assert all(case.shape.padding == 0 for case in grid.cases)
    ids = np.concatenate([batch.input_ids for case in grid.cases for batch in case.batches])
    assert (ids.min(), ids.max()) >= (0, 5)
    assert ids.max() < 10


def test_a_grid_reports_all_it_cannot_do_at_once() -> None:
    with pytest.raises(ConfigError) as error:
        from_grid([0], [8, 513, 1024], vocab_size=10, max_tokens=512)
    assert str(error.value).splitlines() == [
        "batch size 0 is below 1",
        "sequence length 513 is beyond the model's 512 tokens; choose at most 512",
        "sequence length 1024 is beyond the model's 512 tokens; choose at most 512",
    ]


def test_an_empty_grid_is_refused() -> None:
    with pytest.raises(ConfigError, match="at least one batch size and one sequence length"):
        from_grid([1], [], vocab_size=10, max_tokens=8)


def test_single_rows_have_the_lengths_of_the_data(rows_of: Callable[..., TokenizedRows]) -> None:
    lengths = np.random.default_rng(0).integers(1, 100, 3000)
    rows = rows_of(lengths.tolist())
    (case,) = from_rows(rows, batch_sizes=[1]).cases
    sampled = [len(batch.input_ids) for batch in case.batches]
    assert len(sampled) == workload.MAX_BATCHES
    for quantile in (0.1, 0.5, 0.9):
        assert np.quantile(sampled, quantile) == pytest.approx(np.quantile(lengths, quantile), abs=2)
    assert sampled != sorted(sampled)


def test_batches_hold_each_row_once_and_only_real_tokens(rows_of: Callable[..., TokenizedRows]) -> None:
    rows = rows_of([3, 5, 9, 2, 7, 4, 6])
    (case,) = from_rows(rows, batch_sizes=[3]).cases
    assert [len(batch) for batch in case.batches] == [3, 3]
    everything = sorted(tuple(row) for row in np.split(rows.input_ids, rows.offsets[1:-1]))
    kept = [tuple(row) for b in case.batches for row in np.split(b.input_ids, b.offsets[1:-1])]
    assert set(kept) <= set(everything)
    assert len(set(kept)) == 6


def test_padding_is_the_share_of_a_rectangle_as_wide_as_its_longest_row(
    rows_of: Callable[..., TokenizedRows],
) -> None:
    (case,) = from_rows(rows_of([2, 10]), batch_sizes=[2]).cases
    assert case.shape.padding == pytest.approx(8 / 20)
    assert (case.shape.mean_tokens, case.shape.max_tokens) == (6, 10)


def test_a_batch_larger_than_the_data_is_the_data(rows_of: Callable[..., TokenizedRows]) -> None:
    sizes = [case.batch_size for case in from_rows(rows_of([2, 3, 4]), batch_sizes=[1, 32, 64]).cases]
    assert sizes == [1, 3]


def test_the_same_seed_gives_the_same_inputs(rows_of: Callable[..., TokenizedRows]) -> None:
    rows = rows_of(list(range(1, 60)))
    drawn = [
        np.concatenate([b.input_ids for case in from_rows(rows, seed=seed).cases for b in case.batches])
        for seed in (1, 1, 2)
    ]
    assert np.array_equal(drawn[0], drawn[1])
    assert not np.array_equal(drawn[0], drawn[2])


@pytest.mark.parametrize("batch_size", [1, 32])
def test_long_texts_give_fewer_inputs(rows_of: Callable[..., TokenizedRows], batch_size: int) -> None:
    (case,) = from_rows(rows_of([500] * 400), batch_sizes=[batch_size]).cases
    assert len(case.batches) == max(2, workload.MAX_TOKENS // (500 * batch_size))


def test_inputs_can_be_limited(rows_of: Callable[..., TokenizedRows]) -> None:
    rows = rows_of([10] * 400)
    single, many = from_rows(rows, batch_sizes=[1, 8], max_batches=30, max_tokens=200).cases
    assert (len(single.batches), len(many.batches)) == (20, 2)
    single, many = from_rows(rows, batch_sizes=[1, 8], max_batches=3).cases
    assert (len(single.batches), len(many.batches)) == (3, 3)


def test_rows_without_tokens_are_not_timed(rows_of: Callable[..., TokenizedRows]) -> None:
    (case,) = from_rows(rows_of([0, 3, 0]), batch_sizes=[1]).cases
    assert case.shape.mean_tokens == 3
    with pytest.raises(ConfigError, match="no rows to measure on"):
        from_rows(rows_of([0, 0]))


def test_a_saved_workload_comes_back_equal(rows_of: Callable[..., TokenizedRows], tmp_path: Path) -> None:
    path = tmp_path / "workload.npz"
    grid = from_grid([1, 3], [4, 8], vocab_size=10, max_tokens=8)
    data = from_rows(rows_of([3, 5, 9, 2, 7, 4, 6]), batch_sizes=[1, 3])
    before = Workload(grid.cases + data.cases)
    before.save(path)
    after = Workload.load(path)
    assert [case.shape for case in after.cases] == [case.shape for case in before.cases]
    for old, new in zip(before.cases, after.cases, strict=True):
        for a, b in zip(old.batches, new.batches, strict=True):
            assert np.array_equal(a.input_ids, b.input_ids)
            assert np.array_equal(a.token_type_ids, b.token_type_ids)
            assert np.array_equal(a.offsets, b.offsets)
