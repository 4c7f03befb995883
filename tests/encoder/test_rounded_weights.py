from pathlib import Path

import pytest
import torch

from encoder.engine import ALL_ON, Engine
from encoder.freezing import Freezing, freeze_, training_mode_
from encoder.linear import Linear
from encoder.rounded_weights import rounded_weights_
from encoder.training import train_
from encoder.training_config import TrainingConfig

LENGTHS = [3, 9, 5, 5, 12, 2, 7, 4, 6, 8] * 2


@pytest.mark.parametrize("accumulation_steps", [1, 2])
def test_training_with_rounded_weights_is_bit_for_bit_that_of_autocast(
    make_classifier, make_rows, tmp_path: Path, accumulation_steps: int
) -> None:
    config = TrainingConfig(
        num_epochs=2, batch_size=4, learning_rate=0.01, precision="bf16", max_grad_norm=1e9,
        accumulation_steps=accumulation_steps,
    )  # fmt: skip
    learnt = []
    for number, engine in enumerate((ALL_ON, Engine(rounded_weights=False))):
        model = make_classifier()
        folder = tmp_path / str(number)
        train_(model, make_rows(LENGTHS), make_rows(LENGTHS), config, work_folder=folder, engine=engine)
        learnt.append(dict(model.named_parameters()))
    assert [name for name, value in learnt[0].items() if not torch.equal(value, learnt[1][name])] == []


def test_layers_that_are_frozen_have_none_and_nothing_is_left_afterwards(make_classifier) -> None:
    model = make_classifier()
    freeze_(model, Freezing(layers=2))
    with rounded_weights_(model) as rounded:
        training_mode_(model)
        trained = {id(p) for p in model.parameters() if p.requires_grad and p.dim() == 2}
        assert {id(weight) for weight in rounded} == trained
        assert all(torch.equal(weight.bfloat16(), copy) for weight, copy in rounded.items())
    assert all(m.rounded is None for m in model.modules() if isinstance(m, Linear))


def test_in_evaluation_mode_the_weights_themselves_are_used(make_classifier) -> None:
    layer = make_classifier().classifier.dense
    x = torch.randn(3, layer.in_features)
    expected = layer(x)
    with rounded_weights_(layer):
        assert torch.equal(layer.eval()(x), expected)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            layer.train()(x).sum().backward()
        assert layer.weight.grad is None
        assert layer.rounded is not None and layer.rounded.grad is not None
