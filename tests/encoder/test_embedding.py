"""Claims about texts as vectors."""

import numpy as np
import pytest
import torch

from encoder.batches import Batch
from encoder.embedding import embed_rows, normalize
from encoder.errors import ConfigError
from encoder.packing import Packing
from encoder.pooling import pool
from encoder.vector_choice import POOLINGS, choose

LENGTHS = [5, 1, 12, 3, 8]


@pytest.mark.parametrize(
    ("layers", "states"),
    [("-1", [3]), ("3", [3]), ("0", [0]), ("-4", [0]), ("-2:", [2, 3]), ("1:3", [1, 2]), (":", [0, 1, 2, 3])],
)
def test_layers_are_counted_as_python_slices_the_states(layers, states) -> None:
    assert list(choose(layers, "mean", 3).states) == states


@pytest.mark.parametrize("layers", ["4", "-5", "3:3", "4:"])
def test_layer_that_is_not_there_is_refused(layers) -> None:
    with pytest.raises(ConfigError, match=f"--layers {layers}: no such layer; the model has layers 1 to 3"):
        choose(layers, "mean", 3)


@pytest.mark.parametrize("layers", ["last", "", "1:2:3", "1.5"])
def test_layers_that_are_no_layers_are_refused(layers) -> None:
    with pytest.raises(ConfigError, match="expected a layer such as -1"):
        choose(layers, "mean", 3)


def test_pooling_equals_numpys_row_by_row() -> None:
    hidden = torch.randn(6, 4)
    packing = Packing.from_lengths(torch.tensor([3, 0, 1, 2]))
    for pooling, function in (("mean", np.mean), ("max", np.max), ("cls", lambda rows, axis: rows[0])):
        found = pool(hidden, packing, pooling).numpy()
        for row, (start, length) in enumerate([(0, 3), (3, 0), (3, 1), (4, 2)]):
            expected = function(hidden[start : start + length].numpy(), axis=0) if length else np.zeros(4)
            assert found[row] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("layers", ["-1", "0", "1", "-2:"])
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_a_rows_vector_is_that_of_its_hidden_states_whatever_its_batch(
    pooling, layers, norm, make_config, make_classifier, make_rows
) -> None:
    encoder = make_classifier(make_config(norm=norm)).encoder
    rows = make_rows(LENGTHS)
    choice = choose(layers, pooling, 3)
    (found,) = embed_rows(encoder, rows, [choice])
    for row in range(len(rows)):
        alone = Batch.from_rows(rows.select([row]))
        with torch.no_grad():
            states = encoder(alone, output_hidden_states=True).hidden_states
            mean = torch.stack([states[number] for number in choice.states]).mean(0)
        assert found[row] == pytest.approx(pool(mean, alone.packing, pooling)[0].numpy(), abs=1e-5)


def test_one_pass_for_many_choices_equals_one_for_each(make_classifier, make_rows) -> None:
    encoder, rows = make_classifier().encoder, make_rows(LENGTHS)
    choices = [choose(layers, pooling, 3) for layers in ("0", "2", "-1", "1:") for pooling in POOLINGS]
    for choice, together in zip(choices, embed_rows(encoder, rows, choices), strict=True):
        (alone,) = embed_rows(encoder, rows, [choice])
        assert together == pytest.approx(alone, abs=1e-6)


def test_layers_above_the_highest_chosen_are_not_computed(make_classifier, make_rows) -> None:
    encoder = make_classifier().encoder
    encoder.layers[2].register_forward_hook(lambda *_: pytest.fail("the last layer ran"))
    embed_rows(encoder, make_rows(LENGTHS), [choose("2", "mean", 3)])


def test_normalized_vectors_have_length_one_and_zeros_stay() -> None:
    vectors = np.array([[3.0, 4.0], [0.0, 0.0]], dtype=np.float32)
    assert normalize(vectors).tolist() == [[pytest.approx(0.6), pytest.approx(0.8)], [0.0, 0.0]]


def test_bf16_vectors_are_nearly_those_of_fp32(make_classifier, make_rows) -> None:
    encoder, rows = make_classifier().encoder, make_rows(LENGTHS)
    full, half = (
        normalize(embed_rows(encoder, rows, [choose("-1", "mean", 3)], precision=precision)[0])
        for precision in ("fp32", "bf16")
    )
    assert (full * half).sum(1) == pytest.approx(1.0, abs=1e-2)
