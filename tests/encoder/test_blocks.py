import pytest
import torch

import encoder.blocks as blocks
from encoder.blocks import lay_out

LENGTHS = [[5, 2, 9], [4, 4, 4], [1], [3, 0, 2], [0, 0], [], [70, 40, 3, 3, 1, 33, 2], [30] * 50 + [1]]


def lay(lengths: list[int]) -> blocks.Blocks:
    return lay_out(torch.tensor(lengths, dtype=torch.int64))


@pytest.mark.parametrize("lengths", LENGTHS)
def test_every_token_has_a_slot_of_its_own_and_comes_back(lengths: list[int]) -> None:
    laid = lay(lengths)
    tokens = torch.arange(1.0, sum(lengths) + 1)
    assert torch.equal(laid.collect(laid.spread(tokens)), tokens)
    zeros = laid.spread_zeros(tokens)
    assert zeros.count_nonzero() == len(tokens)
    assert torch.equal(laid.collect(zeros), tokens)


@pytest.mark.parametrize("lengths", LENGTHS)
def test_a_row_lies_within_one_block_and_tokens_of_other_rows_are_apart(lengths: list[int]) -> None:
    laid = lay(lengths)
    rows = laid.spread_zeros(
        torch.arange(1, len(lengths) + 1).repeat_interleave(torch.tensor(lengths, dtype=int))
    )
    seen: dict[int, int] = {}
    for part in laid.parts:
        of_part = rows[part.start : part.stop].view(part.num_blocks, part.width)
        bias = part.bias(2, torch.float32)
        for block, row_of_slot in enumerate(of_part):
            for row in row_of_slot[row_of_slot > 0].tolist():
                seen[row] = seen.get(row, 0) + 1
            if bias is not None:
                together = (row_of_slot[:, None] == row_of_slot[None, :]).float()
                for head in (0, 1):
                    assert torch.equal((bias[2 * block + head] == 0).float(), together)
    assert [seen.get(row + 1, 0) for row in range(len(lengths))] == lengths


def test_rows_of_one_length_need_no_mask_and_no_moving() -> None:
    laid = lay([9] * 20)
    assert laid.slots is None
    assert [(part.num_blocks, part.width, part.rows) for part in laid.parts] == [(20, 9, None)]


def test_short_rows_share_blocks_and_long_ones_do_not_make_them_wide() -> None:
    parts = lay([8] * 4 + [200] + [31]).parts
    assert [(part.num_used, part.width) for part in parts] == [(1, 200), (2, 32)]


def test_shapes_come_again_when_lengths_differ_a_little() -> None:
    rng = torch.Generator().manual_seed(0)
    shapes = set()
    for _ in range(100):
        lengths = torch.randint(5, 40, (32,), generator=rng)
        shapes |= {(part.num_blocks, part.width) for part in lay_out(lengths).parts}
    assert len(shapes) < 12


def test_parts_hold_no_more_pairs_than_the_cache_does(monkeypatch) -> None:
    monkeypatch.setattr(blocks, "MAX_PAIRS", 3 * 40**2)
    assert [(part.num_blocks, part.num_used) for part in lay([40] * 7 + [39]).parts] == [
        (3, 3),
        (3, 3),
        (3, 2),
    ]
    monkeypatch.setattr(blocks, "MAX_PAIRS", 1)
    assert [part.num_blocks for part in lay([40] * 3).parts] == [1, 1, 1]
