"""Claims about the least-squares repair."""

import numpy as np
import pytest
import torch

from compress.removal import keep_units
from compress.repair import _Equations, repair_
from encoder.prediction import predict_logits
from tests.compress.conftest import VARIANTS

LENGTHS = [3, 8, 5, 12, 1, 9] * 20


def differ(one, other, rows):
    return float(np.abs(predict_logits(one, rows) - predict_logits(other, rows)).mean())


@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS.keys())
@pytest.mark.parametrize("unit", ["heads", "neurons"])
def test_repaired_model_is_nearer_to_the_original_on_other_rows(
    config_with, classifier, rows_of, unit, changes
):
    model = classifier(config_with(**changes))
    pruned = keep_units(model, unit, [[0, 2], [1, 3], [0, 1], [2, 3]][: len(model.encoder.layers)])
    others = rows_of(LENGTHS, seed=1)
    before = differ(pruned, model, others)
    repair_([pruned], model, rows_of(LENGTHS), units=(unit,), ridge=0.01)
    # Without biases there is less to set right, and with four layers of random numbers more to go wrong.
    assert differ(pruned, model, others) < (0.9 if len(model.encoder.layers) == 2 else 1.0) * before


@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS.keys())
def test_model_that_lost_nothing_stays_as_it_is(config_with, classifier, rows_of, changes):
    model = classifier(config_with(**changes))
    same = keep_units(model, "heads", [[0, 1, 2, 3]] * len(model.encoder.layers))
    repair_([same], model, rows_of(LENGTHS))
    for name, parameter in model.named_parameters():
        assert torch.allclose(same.get_parameter(name), parameter, atol=1e-4), name


def test_head_that_another_can_stand_in_for_is_made_up_for(config_with, classifier, rows_of):
    """Two heads that compute the same: without one of them the other's columns have to double."""
    model = classifier(config_with())
    attention = model.encoder.layers[0].attention
    with torch.no_grad():
        for parameter in attention.qkv.parameters():
            rows = parameter.unflatten(0, (3, 4, 4))
            rows[:, 1] = rows[:, 0]
    pruned = keep_units(model, "heads", [[0, 2, 3], [0, 1, 2, 3]])
    rows = rows_of(LENGTHS)
    before = differ(pruned, model, rows)
    repair_([pruned], model, rows, units=("heads",), ridge=1e-9)
    assert differ(pruned, model, rows) < 1e-3 * before
    weight = attention.output.weight
    found = pruned.encoder.layers[0].attention.output.weight
    assert torch.allclose(found[:, :4], weight[:, :4] + weight[:, 4:8], atol=1e-2)


def test_layer_without_heads_gets_the_mean_of_what_it_gave(config_with, classifier, rows_of):
    model, rows = classifier(config_with()), rows_of(LENGTHS)
    pruned = keep_units(model, "heads", [[], [0, 1, 2, 3]])
    seen = []
    hook = model.encoder.layers[0].attention.register_forward_hook(lambda m, a, out: seen.append(out[0]))
    predict_logits(model, rows)
    hook.remove()
    repair_([pruned], model, rows, units=("heads",))
    assert torch.allclose(pruned.encoder.layers[0].attention.output.bias, torch.cat(seen).mean(0), atol=1e-5)


def test_only_the_projections_asked_for_change(config_with, classifier, rows_of):
    model = classifier(config_with())
    pruned, cut = keep_units(model, "heads", [[0, 2], [1]]), keep_units(model, "heads", [[0, 2], [1]])
    repair_([pruned], model, rows_of(LENGTHS), units=("heads",))
    changed = {n for n, p in pruned.named_parameters() if not torch.equal(p, cut.get_parameter(n))}
    assert changed == {
        f"encoder.layers.{layer}.attention.output.{kind}" for layer in (0, 1) for kind in ("weight", "bias")
    }


def test_oracle_is_the_least_squares_solution(config_with, classifier, rows_of):
    """Of the first sublayer, against numpy.linalg.lstsq on the same inputs and targets."""
    model, rows = classifier(config_with()), rows_of(LENGTHS)
    pruned = keep_units(model, "heads", [[1, 3], [0, 1, 2, 3]])
    inputs, targets = [], []
    attention = model.encoder.layers[0].attention

    def see(module, arguments, output):
        inputs.append(arguments[0])
        targets.append(output)

    hook = attention.output.register_forward_hook(see)
    predict_logits(model, rows)
    hook.remove()
    z = torch.cat(inputs)[:, [4, 5, 6, 7, 12, 13, 14, 15]].double().numpy()
    solution, *_ = np.linalg.lstsq(np.c_[z, np.ones(len(z))], torch.cat(targets).double().numpy(), rcond=None)
    repair_([pruned], model, rows, units=("heads",), ridge=1e-9)
    output = pruned.encoder.layers[0].attention.output
    assert np.allclose(output.weight.detach().numpy(), solution[:-1].T, atol=1e-3)
    assert np.allclose(output.bias.detach().numpy(), solution[-1], atol=1e-3)


def test_several_models_are_repaired_as_each_alone(config_with, classifier, rows_of):
    model, rows = classifier(config_with()), rows_of(LENGTHS)
    kept = ([[0, 2], [1]], [[1], [0, 3]])
    together, alone = ([keep_units(model, "heads", one) for one in kept] for _ in range(2))
    repair_(together, model, rows)
    for one, other in zip(together, alone, strict=True):
        repair_([other], model, rows)
        assert all(torch.equal(p, other.get_parameter(name)) for name, p in one.named_parameters())


def test_inputs_that_hardly_vary_leave_the_weights_nearly_as_they_are():
    torch.manual_seed(0)
    projection = torch.nn.Linear(16, 4)
    before = projection.weight.detach().clone()
    equations = _Equations.of(projection)
    for _ in range(50):
        z = 300 + 1e-3 * torch.randn(64, 16)  # squares of 9e4: in float32 their rounding is all that varies
        with torch.no_grad():
            equations.add(z, projection(z))
    with torch.no_grad():
        equations.solve_(projection, ridge=1e-3)
        z = 300 + 1e-3 * torch.randn(64, 16)
        after = projection(z)
    assert torch.isfinite(projection.weight).all()
    assert (projection.weight - before).abs().max() < 0.5
    assert torch.isfinite(after).all()
