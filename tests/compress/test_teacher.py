"""Claims about a teacher's targets: one pass, packed, the same wherever they are kept."""

import numpy as np
import pytest
import torch

from compress.teacher import compute_targets, target_bytes
from compress.watching import Points, watched
from encoder.batches import Batch
from encoder.errors import EncError
from encoder.prediction import predict_logits

LENGTHS = [5, 3, 12, 1, 8, 9]
POINTS = Points(hidden=frozenset({0, 1, 2}), projections=frozenset({1}))


@pytest.fixture
def teacher(classifier, config_with):
    return classifier(config_with())


@pytest.mark.parametrize("on_disk", [False, True])
def test_targets_of_a_row_are_what_the_teacher_makes_of_it_alone(teacher, rows_of, tmp_path, on_disk):
    rows = rows_of(LENGTHS)
    targets = compute_targets(teacher, rows, POINTS, precision="fp32", folder=tmp_path if on_disk else None)
    np.testing.assert_allclose(targets.logits.numpy(), predict_logits(teacher, rows), atol=1e-5)
    for row in range(len(rows)):
        with watched(teacher, POINTS) as seen, torch.no_grad():
            teacher(Batch.from_rows(rows.select([row])))
        for number, expected in seen.hidden.items():
            found = targets.hidden[number].read_rows(np.array([row]))
            torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)
        found = targets.projections[1].read_rows(np.array([row]))
        torch.testing.assert_close(found, seen.projections[1], atol=1e-5, rtol=1e-4)
    assert list(tmp_path.iterdir()) == []  # a file without a name
    targets.close()


def test_bf16_targets_take_the_bytes_that_were_announced(teacher, rows_of):
    rows = rows_of(LENGTHS)
    targets = compute_targets(teacher, rows, POINTS, precision="bf16")
    kept = [one.read() for one in (*targets.hidden.values(), *targets.projections.values())]
    assert all(one.dtype == torch.bfloat16 for one in kept)
    assert sum(one.nbytes for one in kept) == target_bytes(rows, teacher.config, POINTS, "bf16")
    exact = compute_targets(teacher, rows, POINTS, precision="fp32")
    torch.testing.assert_close(kept[1].float(), exact.hidden[1].read(), atol=0.1, rtol=0.1)
    assert targets.logits.dtype == torch.float32


def test_variance_is_the_mean_square_around_the_mean_vector(teacher, rows_of):
    targets = compute_targets(teacher, rows_of(LENGTHS), POINTS, precision="fp32")
    for number, one in targets.hidden.items():
        expected = one.read().double().var(0, correction=0).mean()
        assert targets.variances[number] == pytest.approx(float(expected), rel=1e-4)


def test_a_full_disk_is_told_and_leaves_nothing(teacher, rows_of, tmp_path, monkeypatch):
    def full(*_):
        raise EncError("full")

    monkeypatch.setattr("encoder.activations.InFile.write", full)
    with pytest.raises(EncError, match="full"):
        compute_targets(teacher, rows_of(LENGTHS), POINTS, precision="fp32", folder=tmp_path)
    assert list(tmp_path.iterdir()) == []
