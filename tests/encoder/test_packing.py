import torch

from encoder.packing import Packing


def packing(*lengths: int) -> Packing:
    return Packing.from_lengths(torch.tensor(lengths))


def test_unpad_undoes_pad() -> None:
    for lengths in [(3, 1, 5), (4, 4), (2, 0, 3), (7,)]:
        p = packing(*lengths)
        tokens = torch.randn(p.num_tokens, 6)
        assert torch.equal(p.unpad(p.pad(tokens)), tokens)


def test_pad_puts_each_row_at_the_left_and_zeros_behind_it() -> None:
    padded = packing(2, 3).pad(torch.arange(1.0, 6.0)[:, None])[..., 0]
    assert padded.tolist() == [[1, 2, 0], [3, 4, 5]]


def test_gradients_through_pad_and_unpad_are_those_of_plain_indexing() -> None:
    p = packing(3, 1, 0, 2)
    tokens = torch.randn(p.num_tokens, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: p.pad(x).sin(), tokens)
    slots = torch.randn(4, 3, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: p.unpad(x).sin(), slots)


def test_positions_and_rows_restart_with_each_row() -> None:
    p = packing(2, 0, 3)
    assert p.positions.tolist() == [0, 1, 0, 1, 2]
    assert p.rows.tolist() == [0, 0, 2, 2, 2]


def test_first_token_of_an_empty_row_is_zero() -> None:
    first = packing(2, 0, 1, 0).first(torch.tensor([[1.0], [2.0], [3.0]]))
    assert first.flatten().tolist() == [1, 0, 3, 0]
    assert packing(0, 0).first(torch.zeros(0, 5)).shape == (2, 5)


def test_key_mask_is_absent_for_a_rectangle_and_never_empty_for_a_row() -> None:
    assert packing(3, 3).key_mask is None
    mask = packing(2, 0).key_mask
    assert mask is not None
    assert mask[:, 0, 0].tolist() == [[True, True], [True, False]]
