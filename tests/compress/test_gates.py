"""Claims about gates."""

import pytest
import torch

from compress.gates import gated, silenced
from encoder.batches import Batch


@pytest.mark.parametrize("unit", ["heads", "neurons"])
def test_gate_of_one_changes_nothing_and_leaves_no_trace(config_with, classifier, rows_of, unit):
    model, batch = classifier(config_with()), Batch.from_rows(rows_of([2, 6, 1]))
    count = 4 if unit == "heads" else 32
    with torch.no_grad():
        before = model(batch)
        with gated(model, unit, [torch.ones(3, count)] * 2, batch.packing):
            assert torch.equal(model(batch), before)
        with silenced(model, unit, [[0], [1]]):
            assert not torch.allclose(model(batch), before)
        assert torch.equal(model(batch), before)
    assert not any(module._forward_pre_hooks for module in model.modules())


def test_gates_go_away_after_an_error(config_with, classifier):
    model = classifier(config_with())
    with pytest.raises(RuntimeError), silenced(model, "heads", [[0], [1]]):
        raise RuntimeError
    assert not any(module._forward_pre_hooks for module in model.modules())


@pytest.mark.parametrize("unit", ["heads", "neurons"])
def test_gate_of_a_row_acts_on_that_row_alone(config_with, classifier, rows_of, unit):
    model, rows = classifier(config_with()), rows_of([2, 6, 1])
    count = 4 if unit == "heads" else 32
    gates = [torch.ones(3, count), torch.ones(3, count)]
    gates[0][1, 2] = gates[1][1, 0] = 0.0
    kept = [[p for p in range(count) if p != gone] for gone in (2, 0)]
    batch = Batch.from_rows(rows)
    with torch.no_grad():
        whole = model(batch)
        with gated(model, unit, gates, batch.packing):
            found = model(batch)
        with silenced(model, unit, kept):
            masked = model(batch)
    assert torch.allclose(found[[0, 2]], whole[[0, 2]], atol=1e-6)
    assert torch.allclose(found[1], masked[1], atol=1e-6)
