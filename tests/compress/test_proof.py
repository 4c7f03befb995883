"""Claims about the proof of a pruned model."""

import pytest
import torch

from compress import proof
from compress.proof import masked_difference, passed_over_difference, reloaded_difference
from compress.removal import keep_layers, keep_units
from encoder.checkpoint import save_classifier
from encoder.errors import CompressionError
from tests.compress.conftest import NoTokenizer


@pytest.mark.parametrize("unit", ["heads", "neurons"])
def test_removed_is_masked(config_with, classifier, rows_of, unit):
    assert masked_difference(classifier(config_with()), unit, [[], [1, 3]], rows_of([3, 9])) < 1e-5


def test_dropped_is_passed_over_and_the_model_stays_whole(config_with, classifier, rows_of):
    model = classifier(config_with())
    assert passed_over_difference(model, [1], rows_of([3, 9])) == 0
    assert len(model.encoder.layers) == 2


def test_removal_that_is_not_masking_is_an_error(config_with, classifier, rows_of, monkeypatch):
    def wrong(model, unit, kept):
        return keep_units(model, unit, [[0], [0]])

    monkeypatch.setattr(proof, "keep_units", wrong)
    with pytest.raises(
        CompressionError, match="silencing heads and removing them should give the same logits"
    ):
        masked_difference(classifier(config_with()), "heads", [[1], [1]], rows_of([3, 9]))


def test_logits_that_are_no_numbers_are_no_proof(config_with, classifier, rows_of):
    model = classifier(config_with())
    with torch.no_grad():
        model.classifier.output.bias.fill_(float("nan"))
    with pytest.raises(CompressionError, match="differ by nan"):
        passed_over_difference(model, [0], rows_of([3]))


def test_pruned_model_loads_in_a_fresh_process_with_equal_logits(config_with, classifier, rows_of, tmp_path):
    """P1. Twice pruned, a layer without heads, another without neurons, and a layer less."""
    shapes = config_with().layers[:1] * 3
    model = keep_layers(classifier(config_with(layers=shapes)), [0, 2])
    model = keep_units(keep_units(model, "heads", [[0, 2, 3], [1]]), "heads", [[], [0]])
    pruned = keep_units(model, "neurons", [[4, 7, 9], []])
    save_classifier(pruned, NoTokenizer(), tmp_path)
    assert reloaded_difference(pruned, tmp_path, rows_of([1, 12, 5]), threads=1) < 1e-6
    with torch.no_grad():
        pruned.classifier.output.bias.add_(0.1)
    with pytest.raises(CompressionError, match="in a fresh process should give the same logits"):
        reloaded_difference(pruned, tmp_path, rows_of([1, 12, 5]), threads=1)
