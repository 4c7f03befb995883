"""Claims about which tokens a masked language model is to guess."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from encoder.batches import Batch
from encoder.masking import MaskedTokens, Masking

SPECIAL = (0, 1, 2, 3, 4)
MASK, VOCABULARY = 4, 50
MASKING = Masking(mask_token_id=MASK, special_ids=SPECIAL, vocab_size=VOCABULARY)


def hidden(count=200_000, masking=MASKING, epoch=0, seed=0):
    """Random tokens, what the model sees of them, and which it is to guess."""
    ids = np.random.default_rng(seed).integers(0, VOCABULARY, count)
    seen, chosen = masking.hide(ids, np.arange(count), epoch)
    return ids, seen, chosen


def assert_share(found, total, expected):
    """Within four standard errors of a binomial."""
    assert abs(found / total - expected) < 4 * np.sqrt(expected * (1 - expected) / total)


@pytest.mark.parametrize("probability", [0.15, 0.4])
def test_the_share_that_is_asked_for_is_chosen_of_ordinary_tokens_only(probability):
    ids, _, chosen = hidden(masking=replace(MASKING, probability=probability))
    assert not np.isin(ids[chosen], SPECIAL).any()
    assert_share(len(chosen), np.count_nonzero(~np.isin(ids, SPECIAL)), probability)


def test_of_the_chosen_80_percent_are_masked_10_replaced_and_10_left():
    ids, seen, chosen = hidden()
    masked, kept = seen[chosen] == MASK, seen[chosen] == ids[chosen]
    replaced = ~masked & ~kept
    assert_share(masked.sum(), len(chosen), 0.8)
    others = VOCABULARY - len(SPECIAL)
    assert_share(replaced.sum(), len(chosen), 0.1 * (1 - 1 / others))  # a draw may be the token itself
    assert not np.isin(seen[chosen][replaced], SPECIAL).any()
    assert set(seen[chosen][replaced]) == set(range(len(SPECIAL), VOCABULARY))


def test_all_other_tokens_stay_as_they_are():
    ids, seen, chosen = hidden()
    rest = np.setdiff1d(np.arange(len(ids)), chosen)
    assert np.array_equal(seen[rest], ids[rest])


def test_each_epoch_and_each_seed_hides_others_and_the_same_ones_again():
    _, _, first = hidden()
    assert np.array_equal(first, hidden()[2])
    for other in (hidden(epoch=1)[2], hidden(masking=replace(MASKING, seed=1))[2]):
        shared = len(np.intersect1d(first, other)) / len(first)
        assert 0.12 < shared < 0.18  # as much as chance gives


def test_what_is_hidden_of_a_row_does_not_depend_on_its_batch(make_rows):
    rows = make_rows([7, 12, 9, 20, 5])
    objective = MaskedTokens(replace(MASKING, probability=0.5), rows)

    def seen(index):
        index = np.array(index)
        batch = objective.prepare(Batch.from_rows(rows.select(index), multiple_of=8), index, 3)
        return np.split(batch.input_ids.numpy(), np.cumsum(rows.lengths[index]))[: len(index)]

    alone = [seen([row])[0] for row in range(5)]
    for row, tokens in zip([3, 0, 4], seen([3, 0, 4]), strict=True):
        assert np.array_equal(tokens, alone[row])


def test_a_batch_says_which_tokens_to_guess_and_what_they_were(make_rows):
    rows = make_rows([7, 12, 9])
    index = np.array([2, 0])
    objective = MaskedTokens(replace(MASKING, probability=0.5), rows)
    batch = objective.prepare(Batch.from_rows(rows.select(index), multiple_of=32), index, 0)
    assert batch.num_filling_rows == 1
    assert objective.weight(index, 0) == len(batch.masked) > 0
    assert np.array_equal(batch.labels, rows.select(index).input_ids[batch.masked.numpy()])
    assert int(batch.masked.max()) < 16  # nothing in the row that fills the batch up


def test_rows_with_nothing_to_guess_lose_nothing(make_rows):
    rows = make_rows([4])
    objective = MaskedTokens(replace(MASKING, probability=1e-9), rows)
    index = np.array([0])
    batch = objective.prepare(Batch.from_rows(rows), index, 0)
    loss = objective.summed_loss(torch.zeros(0, VOCABULARY, requires_grad=True), batch, index)
    assert loss.item() == 0.0
    assert objective.weight(index, 0) == 1.0
