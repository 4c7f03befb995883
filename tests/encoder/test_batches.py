import numpy as np
import pytest
import torch

from encoder.batches import Batch, batches_of_tokens, shuffled_batches
from encoder.blocks import lay_out
from encoder.rows import length_sorted_batches


def test_every_row_comes_once_an_epoch() -> None:
    lengths = np.random.default_rng(0).integers(1, 100, 1003)
    for epoch in range(2):
        batches = shuffled_batches(len(lengths), 32, seed=0, epoch=epoch)
        assert sorted(np.concatenate(batches)) == list(range(1003))
        assert max(map(len, batches)) == 32


def test_seed_and_epoch_decide_the_order() -> None:
    lengths = np.random.default_rng(0).integers(1, 100, 500)

    def order(seed: int, epoch: int) -> list[int]:
        return list(np.concatenate(shuffled_batches(len(lengths), 8, seed=seed, epoch=epoch)))

    assert order(0, 0) == order(0, 0)
    assert order(0, 0) != order(0, 1)
    assert order(0, 0) != order(1, 0)


def test_a_random_batch_needs_little_padding_once_it_is_in_blocks() -> None:
    lengths = np.random.default_rng(0).integers(1, 500, 2000)
    slots = sum(
        lay_out(torch.from_numpy(lengths[rows])).num_slots
        for rows in shuffled_batches(len(lengths), 32, seed=0, epoch=0)
    )
    assert slots < 1.4 * lengths.sum()


@pytest.mark.parametrize("size", [1, 4, 100])
def test_length_sorted_batches_hold_every_row_longest_first(size: int) -> None:
    lengths = [3, 9, 1, 9, 4]
    order = np.concatenate(length_sorted_batches(lengths, size))
    assert sorted(order) == [0, 1, 2, 3, 4]
    assert [lengths[i] for i in order] == sorted(lengths, reverse=True)


def test_selected_rows_are_the_rows(make_rows) -> None:
    rows = make_rows([3, 0, 5, 2])
    picked = rows.select([2, 1, 0])
    parts = [rows.input_ids[rows.offsets[i] : rows.offsets[i + 1]] for i in (2, 1, 0)]
    assert np.array_equal(picked.input_ids, np.concatenate(parts))
    assert picked.lengths.tolist() == [5, 0, 3]
    assert np.array_equal(picked.labels, rows.labels[[2, 1, 0]])


def test_a_batch_holds_what_its_rows_hold(make_rows) -> None:
    rows = make_rows([3, 2])
    batch = Batch.from_rows(rows)
    assert batch.input_ids.tolist() == rows.input_ids.tolist()
    assert batch.labels is not None and batch.labels.dtype == torch.int64
    assert batch.packing.lengths.tolist() == [3, 2]


def test_batches_of_tokens_hold_every_row_once_and_no_more_than_so_many_tokens() -> None:
    lengths = np.random.default_rng(0).integers(0, 60, 301)
    lengths[7] = 500
    batches = batches_of_tokens(lengths, 100)
    assert sorted(np.concatenate(batches)) == list(range(301))
    assert list(batches[0]) == [7]  # alone, as it is longer than that
    assert all(50 < lengths[rows].sum() <= 100 for rows in batches[1:-1])
    assert batches_of_tokens(lengths[:0], 100) == []


def test_a_row_that_fills_a_batch_up_changes_no_other_and_no_gradient(make_classifier, make_rows) -> None:
    model, rows = make_classifier().eval(), make_rows([5, 9, 3])

    def run(multiple_of: int) -> tuple[torch.Tensor, list[torch.Tensor]]:
        batch = Batch.from_rows(rows, multiple_of=multiple_of)
        assert batch.packing.num_tokens % multiple_of == 0
        model.zero_grad()
        logits = model(batch)
        logits.square().sum().backward()
        return logits.detach(), [p.grad.clone() for p in model.parameters() if p.grad is not None]

    (plain, gradient), (filled, same) = run(1), run(16)
    assert torch.allclose(filled, plain, atol=1e-6)
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(gradient, same, strict=True))
    assert Batch.from_rows(make_rows([8, 8]), multiple_of=16).packing.num_rows == 2
