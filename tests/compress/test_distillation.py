"""The losses of a distillation against independent formulas, and what must not change them."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from compress.distillation import (
    Distillation,
    DistillationConfig,
    Weights,
    choose_relation_heads,
    relation_losses,
    soft_losses,
    state_losses,
)
from compress.student import matching_states
from compress.teacher import compute_targets
from compress.watching import watched
from encoder.batches import Batch
from encoder.config import ClassifierConfig
from encoder.packing import Packing
from encoder.task import Task

SINGLE = Task(kind="single_label", labels=("a", "b", "c"))
MULTI = Task(kind="multi_label", labels=("a", "b", "c"))
NUMBER = Task(kind="regression")
LENGTHS = [5, 3, 9, 1, 7]


def logits(rows=6, columns=3, seed=0):
    return torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed))


# ---- answers ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("temperature", [1.0, 2.0, 5.0])
def test_single_label_is_torchs_divergence_times_the_square_of_the_temperature(temperature):
    student, teacher = logits(seed=1), logits(seed=2)
    found = soft_losses(SINGLE, student, teacher, temperature)
    expected = F.kl_div(
        (student / temperature).log_softmax(-1), (teacher / temperature).softmax(-1), reduction="none"
    ).sum(-1)
    torch.testing.assert_close(found, temperature**2 * expected)


@pytest.mark.parametrize("temperature", [1.0, 3.0])
def test_multi_label_has_the_gradient_of_binary_cross_entropy_for_each_label_by_itself(temperature):
    student, teacher = logits(seed=1).requires_grad_(), logits(seed=2)
    (found,) = torch.autograd.grad(soft_losses(MULTI, student, teacher, temperature).sum(), student)
    oracle = F.binary_cross_entropy_with_logits(
        student / temperature, (teacher / temperature).sigmoid(), reduction="sum"
    )
    (expected,) = torch.autograd.grad(oracle, student)
    torch.testing.assert_close(found, expected * temperature**2 / 3)
    # What the other labels say changes nothing, as it would in a softmax.
    changed = teacher.clone()
    changed[:, 1:] += 5.0
    (other,) = torch.autograd.grad(soft_losses(MULTI, student, changed, temperature).sum(), student)
    assert torch.equal(found[:, 0], other[:, 0])
    assert not torch.equal(found[:, 1], other[:, 1])


def test_regression_is_the_squared_error_whatever_the_temperature():
    student, teacher = logits(columns=1, seed=1), logits(columns=1, seed=2)
    for temperature in (1.0, 4.0):
        found = soft_losses(NUMBER, student, teacher, temperature)
        torch.testing.assert_close(found, F.mse_loss(student, teacher, reduction="none")[:, 0])


@pytest.mark.parametrize("task", [SINGLE, MULTI, NUMBER], ids=lambda task: task.kind)
def test_equal_answers_cost_nothing_and_others_something(task):
    one, other = logits(columns=task.num_outputs), logits(columns=task.num_outputs, seed=9)
    assert soft_losses(task, one, one, 2.0).abs().max() < 1e-6
    assert soft_losses(task, one, other, 2.0).min() > 0


# ---- hidden states ----------------------------------------------------------------------------------------


def test_hidden_states_are_compared_as_torch_does():
    one, other = logits(8, 5, seed=1), logits(8, 5, seed=2)
    found = state_losses(one, other, "mse", 0.25)
    torch.testing.assert_close(found.mean(), F.mse_loss(one, other) / 0.25)
    found = state_losses(one, other, "cosine", 0.25)
    expected = F.cosine_embedding_loss(one, other, torch.ones(8), reduction="none")
    torch.testing.assert_close(found, expected)


# ---- relations --------------------------------------------------------------------------------------------


def dense_relation_loss(student, teacher, num_heads):
    """Of one row, [T, W] each, head by head, as the paper writes it."""
    total = 0.0
    for one, other in zip(student.chunk(num_heads, 1), teacher.chunk(num_heads, 1), strict=True):
        student_relation = (one @ one.T / one.shape[1] ** 0.5).log_softmax(-1)
        teacher_relation = (other @ other.T / other.shape[1] ** 0.5).softmax(-1)
        total += F.kl_div(student_relation, teacher_relation, reduction="sum") / (num_heads * len(one))
    return total


@pytest.mark.parametrize("lengths", [LENGTHS, [4, 4, 4], [40, 2, 33, 5, 1]])
def test_relations_are_those_of_each_row_alone(lengths):
    packing = Packing.from_lengths(torch.tensor(lengths))
    student, teacher = logits(sum(lengths), 12, seed=1), logits(sum(lengths), 24, seed=2)
    found = relation_losses(student, teacher, packing, 4)
    rows = zip(student.split(lengths), teacher.split(lengths), strict=True)
    expected = torch.stack([torch.as_tensor(dense_relation_loss(*row, 4)) for row in rows])
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)


def test_relations_do_not_depend_on_how_many_heads_made_them(classifier, config_with, rows_of):
    """Eight heads of 2 and two of 8 make the same queries, keys and values side by side."""
    shape = config_with().layers[0]
    losses = []
    for count in (2, 8):
        heads = shape.model_copy(update={"heads": tuple(range(count)), "head_size": 16 // count})
        student = classifier(config_with(layers=(heads,)), seed=1)
        teacher = classifier(config_with(), seed=2)
        rows = replace(rows_of(LENGTHS), labels=np.zeros(len(LENGTHS), dtype=np.int64))
        weights = Weights(relations=1.0)
        losses.append(objective_loss(student, teacher, rows, weights=weights, num_relation_heads=4))
    assert losses[0] > 0.01
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def test_relation_heads_divide_both_widths():
    assert choose_relation_heads(384, 384) == 24
    assert choose_relation_heads(224, 384) == 16
    assert choose_relation_heads(224, 384, 32) == 32
    assert choose_relation_heads(224, 384, 24) is None
    assert choose_relation_heads(0, 384) is None


# ---- the objective ----------------------------------------------------------------------------------------


def objective_loss(student, teacher, rows, index=None, *, multiple_of=1, num_labelled=None, **config):
    """The summed loss of the rows ``index`` as one batch."""
    size, last = student.config.num_hidden_layers, teacher.config.num_hidden_layers
    loss = DistillationConfig(states=matching_states(last, size), layers=(size - 1, last - 1), **config)
    targets = compute_targets(teacher, rows, loss.teacher_points, precision="fp32")
    index = np.arange(len(rows)) if index is None else np.asarray(index)
    labelled = len(rows) if num_labelled is None else num_labelled
    widths = (student.config.hidden_size, teacher.config.hidden_size)
    with watched(student, loss.student_points) as seen:
        made = Distillation(
            loss, student.task, seen, targets, rows.labels, num_labelled=labelled, widths=widths,
            first_only=student.config.reads_first_token_only,
        )  # fmt: skip
        batch = Batch.from_rows(rows.select(index), multiple_of=multiple_of)
        with torch.no_grad():
            return float(made.summed_loss(student(batch), batch, index))


ALL_SOFT = Weights(soft=1.0, hidden=0.7, relations=0.5, embeddings=0.3)


@pytest.fixture
def rows(rows_of):
    made = rows_of(LENGTHS)
    return replace(made, labels=np.array([0, 1, 2, 0, 1]))


@pytest.fixture
def teacher(classifier, config_with):
    shape = config_with().layers[0]
    return classifier(config_with(layers=(shape,) * 4), seed=1)


@pytest.fixture
def student(classifier, config_with):
    return classifier(config_with(), seed=2)


def test_a_student_that_is_its_teacher_has_nothing_to_learn(teacher, rows):
    assert abs(objective_loss(teacher, teacher, rows, weights=ALL_SOFT)) < 1e-5


@pytest.mark.parametrize("pooling", ["cls", "mean"])
@pytest.mark.parametrize("of_teacher", ["cls", "mean"])
@pytest.mark.parametrize("multiple_of", [1, 32])
def test_last_states_are_compared_whatever_either_classifier_looks_at(
    classifier, config_with, rows, pooling, of_teacher, multiple_of
):
    one, other = (
        classifier(config_with(classifier=ClassifierConfig(pooling=one))) for one in (pooling, of_teacher)
    )
    weights = Weights(hidden=1.0, relations=1.0, embeddings=1.0)
    same = objective_loss(one, other, rows, weights=weights, multiple_of=multiple_of)
    assert abs(same) < 1e-5
    third = classifier(config_with(classifier=ClassifierConfig(pooling=pooling)), seed=2)
    assert objective_loss(third, other, rows, weights=weights, multiple_of=multiple_of) > 0.1


@pytest.mark.parametrize(
    "weights", [ALL_SOFT, *(Weights(**{name: 1.0}) for name in Weights.model_fields)], ids=str
)
def test_neither_padding_nor_other_rows_change_a_loss(student, teacher, rows, weights):
    alone = [objective_loss(student, teacher, rows, [row], weights=weights) for row in range(len(rows))]
    assert sum(alone) > 0  # a row of one token has no relations
    order = [3, 0, 4, 2, 1]
    for multiple_of in (1, 32):
        together = objective_loss(student, teacher, rows, order, weights=weights, multiple_of=multiple_of)
        assert together == pytest.approx(sum(alone), rel=1e-4)


def test_rows_without_tokens_are_no_nan(student, teacher, rows_of):
    rows = replace(rows_of([4, 0, 3]), labels=np.array([0, 1, 2]))
    assert np.isfinite(objective_loss(student, teacher, rows, weights=ALL_SOFT))


def test_rows_without_labels_count_for_the_teachers_answers_only(student, teacher, rows):
    hard = objective_loss(student, teacher, rows, weights=Weights(hard=1.0), num_labelled=2)
    assert hard == pytest.approx(objective_loss(student, teacher, rows, [0, 1], weights=Weights(hard=1.0)))
    soft = objective_loss(student, teacher, rows, weights=Weights(soft=1.0), num_labelled=2)
    assert soft == pytest.approx(objective_loss(student, teacher, rows, weights=Weights(soft=1.0)))


def test_a_narrower_student_is_compared_through_a_map_that_trains(classifier, config_with, teacher, rows):
    narrow = classifier(config_with(hidden_size=8, embedding_size=8), seed=2)
    loss = DistillationConfig(weights=Weights(hidden=1.0, embeddings=1.0), states=matching_states(4, 2))
    targets = compute_targets(teacher, rows, loss.teacher_points, precision="fp32")
    with watched(narrow, loss.student_points) as seen:
        made = Distillation(loss, narrow.task, seen, targets, rows.labels, num_labelled=5, widths=(8, 16))
        batch = Batch.from_rows(rows)
        made.summed_loss(narrow(batch), batch, np.arange(5)).backward()
    assert set(made.parameters()) == {
        f"projections.{number}.{kind}" for number in (0, 1, 2) for kind in ("weight", "bias")
    }
    assert all(parameter.grad.abs().sum() > 0 for parameter in made.parameters().values())


def test_two_losses_that_differ_are_two_runs(student, teacher, rows):
    def identity(**changes):
        loss = DistillationConfig(weights=Weights(soft=1.0), **changes)
        targets = compute_targets(teacher, rows, loss.teacher_points, precision="fp32")
        with watched(student, loss.student_points) as seen:
            return Distillation(
                loss, student.task, seen, targets, rows.labels, num_labelled=5, widths=(16, 16)
            ).identity

    assert identity() == identity()
    assert identity() != identity(temperature=3.0)
