"""Claims about gates."""

import numpy as np
import pytest
import torch

from compress.gates import gated, silenced, without_source
from encoder.batches import Batch
from encoder.residual import Stream
from tests.compress.conftest import ATTENDING


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


@pytest.mark.parametrize("lengths", [[2, 6, 1], [3, 0, 0]], ids=["rows", "as many tokens as rows"])
@pytest.mark.parametrize("unit", ["heads", "neurons"])
def test_gate_of_a_row_acts_on_that_row_alone(config_with, classifier, rows_of, unit, lengths):
    model, rows = classifier(config_with()), rows_of(lengths)
    row, count = int(np.argmax(lengths)), 4 if unit == "heads" else 32
    gates = [torch.ones(3, count), torch.ones(3, count)]
    gates[0][row, 2] = gates[1][row, 0] = 0.0
    kept = [[p for p in range(count) if p != gone] for gone in (2, 0)]
    batch = Batch.from_rows(rows)
    with torch.no_grad():
        whole = model(batch)
        with gated(model, unit, gates, batch.packing):
            found = model(batch)
        with silenced(model, unit, kept):
            masked = model(batch)
    others = [other for other in range(3) if other != row]
    assert torch.allclose(found[others], whole[others], atol=1e-6)
    assert torch.allclose(found[row], masked[row], atol=1e-6)


def test_a_source_that_nobody_reads_leaves_its_weight_to_the_others(config_with, classifier, rows_of):
    model, batch = classifier(config_with(**ATTENDING)), Batch.from_rows(rows_of([2, 6]))
    residual = model.encoder.layers[1].attention_residual
    sources = tuple(torch.randn(8, 16) for _ in range(3))
    with torch.no_grad():
        before = model(batch)
        expected = residual(Stream((sources[0], sources[2])))
        with without_source(model, 1):
            assert torch.allclose(residual(Stream(sources)), expected)
            assert torch.equal(residual(Stream(sources[:1])), sources[0])  # who has no other keeps it
            assert not torch.allclose(model(batch), before, atol=1e-3)
        assert torch.equal(model(batch), before)
    assert not any(module._forward_pre_hooks for module in model.modules())
