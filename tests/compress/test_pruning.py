"""Claims about pruning as a whole."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from compress.pruning import Pruned, PruningPlan, PruningRows, prune, prune_at_random, prune_within
from compress.removal import keep_units
from encoder.errors import CompressionError


@pytest.fixture
def rows(rows_of):
    made = rows_of([2, 9, 5, 1, 7, 3] * 5)
    labelled = replace(made, labels=np.arange(30) % 3)
    return PruningRows(labelled, labelled)


@pytest.fixture
def model(config_with, classifier):
    return classifier(config_with())


@pytest.mark.parametrize("unit", ["heads", "neurons"])
@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("repair", [True, False])
def test_what_is_kept_is_named_by_its_place_in_the_original(model, rows, unit, steps, repair):
    plan = PruningPlan(unit, steps=steps, repair=repair)
    pruned = prune(model, rows, plan, 3)
    assert sum(map(len, pruned.kept)) == 3
    expected = keep_units(model, unit, pruned.kept)
    assert pruned.model.config == expected.config
    same = all(torch.equal(p, expected.get_parameter(n)) for n, p in pruned.model.named_parameters())
    assert same != repair
    assert [len(one) for one in pruned.scores] == ([4, 4] if unit == "heads" else [32, 32])


def test_original_stays_as_it_was(model, rows):
    before = {name: p.clone() for name, p in model.named_parameters()}
    prune(model, rows, PruningPlan("heads", steps=2), 2)
    assert all(torch.equal(p, before[name]) for name, p in model.named_parameters())


def test_scores_that_are_known_are_not_computed_again(model, rows):
    scores = [np.array([9.0, 8.0, 0.0, 0.0]), np.array([0.0, 0.0, 0.0, 7.0])]
    assert prune(model, rows, PruningPlan("heads"), 3, scores=scores).kept == [[0, 1], [3]]


def test_next_step_begins_with_what_was_trained(model, rows):
    """A head that the training makes useless goes next, and the repair aims at what was trained."""
    trained = []

    def train_(made, step):
        trained.append((step, [shape.heads for shape in made.config.layers]))
        with torch.no_grad():
            made.encoder.layers[0].attention.output.weight[:, :4] = 0
            made.classifier.dense.bias.add_(1.0)

    plan = PruningPlan("heads", steps=3)
    pruned = prune(model, rows, plan, 2, train_=train_)
    (first, before), (second, between) = trained
    assert (first, second) == (1, 2)
    assert (sum(map(len, before)), sum(map(len, between))) == (6, 4)
    assert before[0][0] not in between[0]
    assert between[0][:1] != before[0][:1]
    torch.testing.assert_close(pruned.model.classifier.dense.bias, model.classifier.dense.bias + 2)
    assert sum(map(len, pruned.kept)) == 2


@pytest.mark.parametrize("trained", [False, True])
def test_repair_aims_at_the_model_before_the_step_where_that_was_trained(model, rows, monkeypatch, trained):
    goals = []
    monkeypatch.setattr(
        "compress.pruning.repair_", lambda made, original, rows, device: goals.append(original)
    )
    prune(model, rows, PruningPlan("heads", steps=2), 4, train_=(lambda *_: None) if trained else None)
    assert goals[0] is model
    assert (goals[1] is model) != trained


def test_control_is_drawn_in_the_same_scope_with_the_same_minimum_and_repair(model, rows):
    plan = PruningPlan("heads", scope="layer", min_per_layer=1)
    first, second, again = prune_at_random(model, rows.repair, plan, 3, (0, 1, 0))
    for made in (first, second):
        assert sorted(len(shape.heads) for shape in made.config.layers) == [1, 2]
    assert all(torch.equal(p, again.get_parameter(name)) for name, p in first.named_parameters())
    assert first.config != second.config
    plain, _ = prune_at_random(model, None, plan, 3, (0, 1))
    assert plain.config == first.config
    projections = [one.encoder.layers[0].attention.output.weight for one in (plain, first)]
    assert not torch.equal(*projections)


def test_minimum_per_layer_that_cannot_be_met_is_refused(model, rows):
    with pytest.raises(CompressionError, match="at least 2 in each of 2 layers"):
        prune(model, rows, PruningPlan("heads", min_per_layer=2), 3)


@pytest.mark.parametrize("limit", range(9))
def test_search_finds_the_fewest_that_are_within(model, limit):
    keeps = [8, 7, 6, 5, 4, 3, 2, 1]

    def make(keep: int) -> Pruned:
        return Pruned(model, [[keep]], None)

    def drop_of(_: object) -> float:
        return 8 - tried[-1]

    tried: list[int] = []

    def remember(keep: int) -> Pruned:
        tried.append(keep)
        return make(keep)

    best, within, trials = prune_within(remember, drop_of, keeps, limit - 1)
    assert best.kept == [[min(8, max(1, 9 - limit))]]
    assert within == (limit > 0)
    assert [trial.keep for trial in trials] == tried
    assert len(trials) <= 4
