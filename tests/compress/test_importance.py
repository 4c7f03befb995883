"""Claims about importance."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from compress.gates import gated
from compress.importance import gate_gradients, mean_loss, own_answers, score_units
from compress.removal import keep_units
from encoder.batches import Batch
from encoder.config import LayerShape
from encoder.errors import CompressionError
from encoder.losses import summed_loss
from encoder.task import Task


@pytest.fixture
def rows(rows_of):
    made = rows_of([2, 9, 5, 1, 7, 3])
    return replace(made, labels=np.array([0, 1, 2, 0, 1, 2]))


@pytest.fixture
def model(config_with, classifier):
    return classifier(config_with())


@pytest.mark.parametrize("unit", ["heads", "neurons"])
def test_gradient_is_that_of_each_row_alone(model, rows, unit):
    """Oracle: autograd at one gate a unit, a row at a time."""
    found = gate_gradients(model, rows, unit)
    for row in range(len(rows)):
        batch = Batch.from_rows(rows.select([row]))
        gates = [torch.ones(one.shape[1], requires_grad=True) for one in found]
        with gated(model, unit, gates):
            loss = summed_loss(model.task, model(batch), batch.labels)
        for one, gradient in zip(found, torch.autograd.grad(loss, gates), strict=True):
            assert np.allclose(one[row], gradient.numpy(), atol=1e-6)


def test_gradient_says_what_a_small_change_does(model, rows):
    """Last layer included: a gate there is worth as much as one below, though it acts on one token."""
    gradients, step = gate_gradients(model, rows, "heads"), 1e-2
    for layer in (0, 1):
        gates = [torch.ones(4), torch.ones(4)]
        gates[layer][2] += step
        with gated(model, "heads", gates):
            more = mean_loss(model, rows)
        gates[layer][2] -= 2 * step
        with gated(model, "heads", gates):
            less = mean_loss(model, rows)
        assert (more - less) / (2 * step) == pytest.approx(gradients[layer][:, 2].mean(), rel=0.02, abs=1e-5)


def test_gradients_leave_the_model_as_it_was(model, rows):
    model.encoder.embeddings.requires_grad_(False)
    gate_gradients(model, rows, "heads")
    assert all(p.grad is None for p in model.parameters())
    assert not any(p.requires_grad for p in model.encoder.embeddings.parameters())
    assert all(p.requires_grad for p in model.encoder.layers.parameters())


def test_what_else_is_scored_with_a_row_changes_no_gradient(model, rows):
    whole = gate_gradients(model, rows, "heads")
    part = gate_gradients(model, rows.select([3, 1]), "heads")
    for one, two in zip(whole, part, strict=True):
        assert np.allclose(one[[3, 1]], two, atol=1e-6)


def test_scores_are_the_means_of_the_rows_gradients(model, rows):
    gradients = gate_gradients(model, rows, "heads")
    for method, power in (("gradient", 1), ("fisher", 2)):
        for one, found in zip(gradients, score_units(model, rows, "heads", method), strict=True):
            assert np.allclose(found, (np.abs(one) ** power).mean(0), rtol=1e-5)


def test_ablation_is_the_rise_of_the_loss_without_the_head(model, rows):
    found = score_units(model, rows, "heads", "ablation")
    without = keep_units(model, "heads", [[0, 1, 2, 3], [0, 1, 3]])
    assert found[1][2] == pytest.approx(mean_loss(without, rows) - mean_loss(model, rows), abs=1e-6)
    without = keep_units(model, "heads", [[1, 2, 3], [0, 1, 2, 3]])
    assert found[0][0] == pytest.approx(mean_loss(without, rows) - mean_loss(model, rows), abs=1e-6)


@pytest.mark.parametrize("method", ["gradient", "fisher", "ablation", "magnitude"])
def test_head_that_contributes_nothing_is_the_least_important(model, rows, method):
    with torch.no_grad():
        model.encoder.layers[1].attention.output.weight[:, 8:12] = 0
    scores = score_units(model, rows, "heads", method)
    assert scores[1][2] == pytest.approx(0, abs=1e-7)
    assert np.delete(np.abs(scores[1]), 2).min() > 1e-6


def test_magnitude_of_a_neuron_is_the_norm_of_its_column(model, rows):
    weight = model.encoder.layers[0].feed_forward.output.weight.detach()
    assert np.allclose(score_units(model, rows, "neurons", "magnitude")[0], weight.norm(dim=0).numpy())


def test_normalized_scores_have_norm_one_in_each_layer(model, rows):
    for one in score_units(model, rows, "heads", "gradient", normalize=True):
        assert np.linalg.norm(one) == pytest.approx(1)


def test_random_scores_follow_the_seed(model, rows):
    first, again, other = (score_units(model, rows, "heads", "random", seed=seed) for seed in (0, 0, 1))
    assert all(np.array_equal(one, two) for one, two in zip(first, again, strict=True))
    assert not np.array_equal(first[0], other[0])


@pytest.mark.parametrize("method", ["gradient", "fisher", "ablation", "magnitude", "random"])
@pytest.mark.parametrize("unit", ["heads", "neurons"])
def test_layer_without_units_is_scored_too(model, rows, method, unit):
    emptied = keep_units(model, unit, [[], [0, 2]])
    assert [len(one) for one in score_units(emptied, rows, unit, method)] == [0, 2]


def test_ablation_of_thousands_of_neurons_is_refused(config_with, classifier, rows):
    shape = LayerShape(heads=(0,), head_size=4, intermediate_size=2000)
    with pytest.raises(CompressionError, match=r"4,000 times.*choose fisher or gradient"):
        score_units(classifier(config_with(layers=(shape, shape))), rows, "neurons", "ablation")


@pytest.mark.parametrize("kind", ["single_label", "multi_label", "regression"])
def test_own_answers_are_what_the_model_holds_probable(model, rows_of, kind):
    task = Task(kind=kind, labels=() if kind == "regression" else ("a", "b", "c"))
    rows = rows_of([3] * 2000)
    with torch.no_grad():
        model.classifier.output.weight.zero_()
        model.classifier.output.bias.copy_(torch.tensor([0.0, 1.0, -1.0]))
        if kind == "regression":
            model.classifier.output = torch.nn.Linear(16, 1)
            model.classifier.output.weight.zero_()
            model.classifier.output.bias.fill_(3.0)
    model.task = task
    labels = own_answers(model, rows, seed=0).labels
    if kind == "regression":
        assert (labels.mean(), labels.std()) == (pytest.approx(3, abs=0.1), pytest.approx(1, abs=0.1))
    elif kind == "multi_label":
        assert np.allclose(labels.mean(0), [0.5, 0.731, 0.269], atol=0.04)
    else:
        shares = np.bincount(labels, minlength=3) / 2000
        assert np.allclose(shares, [0.245, 0.665, 0.09], atol=0.04)
    assert labels.dtype == (np.int64 if kind == "single_label" else np.float32)
