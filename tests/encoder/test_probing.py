"""Claims about linear probes."""

import numpy as np
import pytest

from encoder.probing import Rows, choose_strength, rows_right


def make(rows, seed, signal):
    random = np.random.default_rng(seed)
    labels = random.integers(0, 3, rows)
    vectors = random.standard_normal((rows, 8)) + signal * np.eye(8)[labels]
    return Rows(vectors.astype(np.float32), labels)


def test_probe_finds_what_is_there_and_nothing_in_noise() -> None:
    assert rows_right(make(300, 0, 4.0), make(200, 1, 4.0), 0.1).mean() > 0.95
    assert rows_right(make(300, 0, 0.0), make(200, 1, 0.0), 0.1).mean() < 0.45


def test_scale_and_shift_of_the_numbers_change_nothing() -> None:
    train, test = make(200, 0, 1.5), make(200, 1, 1.5)
    scale, shift = np.float32(2.0) ** np.arange(8, dtype=np.float32), np.float32(3)
    moved = [Rows(rows.vectors * scale + shift, rows.labels) for rows in (train, test)]
    assert (rows_right(train, test, 0.1) == rows_right(*moved, 0.1)).mean() > 0.99


def test_strength_is_the_best_on_validation_and_the_smallest_of_equals() -> None:
    train, validation = make(60, 0, 1.0), make(300, 1, 1.0)
    shares = {s: rows_right(train, validation, s).mean() for s in (1e-6, 0.1, 100.0)}
    assert shares[choose_strength(train, validation, tuple(shares))] == max(shares.values())
    easy = make(60, 0, 50.0)
    assert choose_strength(easy, easy, (0.1, 1.0)) == 0.1


def test_constant_number_and_single_class_are_no_trouble() -> None:
    train, test = make(50, 0, 3.0), make(50, 1, 3.0)
    for rows in (train, test):
        rows.vectors[:, 0] = 1.0
    assert np.isfinite(rows_right(train, test, 0.1)).all()
    one = train.with_labels(np.zeros(50, dtype=np.int64))
    assert rows_right(one, test, 0.1).tolist() == (test.labels == 0).tolist()


@pytest.mark.parametrize("index", [[3, 1], []])
def test_select_keeps_vectors_and_labels_together(index) -> None:
    rows = make(5, 0, 1.0)
    chosen = rows.select(np.array(index, dtype=np.int64))
    assert np.array_equal(chosen.vectors, rows.vectors[index])
    assert np.array_equal(chosen.labels, rows.labels[index])
