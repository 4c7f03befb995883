"""Claims about how a student starts."""

import pytest
import torch

from compress.removal import keep_layers
from compress.student import choose_layers, draw_student, matching_states, shrink_steps, thinner_config
from encoder.errors import CompressionError


@pytest.fixture
def teacher(classifier, config_with):
    shape = config_with().layers[0]
    return classifier(config_with(layers=(shape,) * 12))


@pytest.mark.parametrize(
    ("choice", "keep", "layers"),
    [
        ("alternate", 6, [1, 3, 5, 7, 9, 11]),
        ("alternate", 3, [3, 7, 11]),
        ("alternate", 4, [2, 5, 8, 11]),
        ("first", 3, [0, 1, 2]),
        ("last", 3, [9, 10, 11]),
        ("top", 3, [9, 10, 11]),
        ("alternate", 12, list(range(12))),
    ],
)
def test_the_layers_that_a_student_starts_from(teacher, rows_of, choice, keep, layers):
    assert choose_layers(teacher, keep, choice, rows_of([3])) == layers


def test_a_student_is_an_exact_copy_of_the_layers_it_starts_from(teacher):
    layers = [1, 3, 5, 7, 9, 11]
    student = keep_layers(teacher, layers)
    for place, layer in enumerate(layers):
        pairs = zip(
            student.encoder.layers[place].parameters(),
            teacher.encoder.layers[layer].parameters(),
            strict=True,
        )
        assert all(torch.equal(one, other) for one, other in pairs)
    for name in ("encoder.embeddings.word.weight", "classifier.dense.weight", "classifier.output.bias"):
        assert torch.equal(student.get_parameter(name), teacher.get_parameter(name))


def test_hidden_states_match_at_even_steps_and_the_last_matches_the_last():
    assert matching_states(12, 6) == {1: 2, 2: 4, 3: 6, 4: 8, 5: 10, 6: 12}
    assert matching_states(12, 3) == {1: 4, 2: 8, 3: 12}
    assert matching_states(12, 12) == {number: number for number in range(1, 13)}


@pytest.mark.parametrize(
    ("args", "sizes"),
    [((12, 6, 2), [9, 6]), ((12, 6, 1), [6]), ((12, 3, 3), [9, 6, 3]), ((6, 3, 3), [5, 4, 3])],
)
def test_layers_go_in_equal_steps(args, sizes):
    assert shrink_steps(*args) == sizes


def test_a_thinner_student_keeps_the_size_of_heads_where_it_can(teacher):
    config = thinner_config(teacher.config, num_layers=2, hidden_size=8)
    shape = config.layers[0]
    assert (config.hidden_size, config.embedding_size, config.num_hidden_layers) == (8, 8, 2)
    assert (shape.num_attention_heads, shape.head_size, shape.intermediate_size) == (2, 4, 32)
    student = draw_student(teacher, config, seed=0)
    assert student.task == teacher.task
    assert set(student.new_parameters) == {name for name, _ in student.named_parameters()}


def test_heads_that_do_not_share_the_width_are_refused(teacher):
    with pytest.raises(CompressionError, match="a hidden size of 10 cannot be shared by 4 heads"):
        thinner_config(teacher.config, hidden_size=10, num_heads=4)
