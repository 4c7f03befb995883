from pathlib import Path

import numpy as np
import pytest
import torch

from encoder.batches import Batch
from encoder.dropout import Dropout
from encoder.engine import ALL_ON, Engine
from encoder.model import use_
from encoder.prediction import predict_logits
from encoder.training import train_
from encoder.training_config import TrainingConfig

LENGTHS = [3, 9, 5, 5, 12, 2, 7, 4, 6, 8] * 2
NO_DROPOUT = {"hidden_dropout": 0.0, "attention_dropout": 0.0, "classifier": {"dropout": 0.0}}


@pytest.mark.parametrize("piece", Engine.model_fields)
def test_without_a_piece_the_same_is_learnt(
    make_config, make_classifier, make_rows, tmp_path: Path, piece: str
) -> None:
    config = TrainingConfig(num_epochs=2, batch_size=8, learning_rate=0.01)
    rows, logits = make_rows(LENGTHS), []
    for engine in (ALL_ON, Engine(**{piece: False})):
        model = make_classifier(make_config(**NO_DROPOUT))
        before = predict_logits(model, rows)
        train_(model, rows, None, config, work_folder=tmp_path, engine=engine)
        logits.append(predict_logits(model, rows))
    # Not the weights: those without a gradient, as the biases of keys, follow the noise of rounding.
    assert np.allclose(*logits, atol=1e-3)
    assert np.abs(logits[0] - before).max() > 0.1


def test_dropout_of_torch_is_there_when_the_cheap_one_is_off(make_classifier, make_rows) -> None:
    model = make_classifier()
    use_(model, Engine(cheap_dropout=False))
    layer = next(m for m in model.modules() if isinstance(m, Dropout) and m.p > 0).train()
    x = torch.ones(50, 20)
    torch.manual_seed(0)
    ours = layer(x)
    torch.manual_seed(0)
    assert torch.equal(ours, torch.nn.functional.dropout(x, layer.p))
    model.train()
    assert model(Batch.from_rows(make_rows([3, 5]))).isfinite().all()  # and among attention weights


def test_a_model_follows_the_engine_it_was_given_last(make_classifier, make_rows) -> None:
    model, batch = make_classifier(), Batch.from_rows(make_rows([3, 9, 5]))
    before = model(batch)
    use_(model, Engine(blocks=False, first_token_only=False))
    off = model(batch)
    use_(model, ALL_ON)
    assert torch.allclose(off, before, atol=1e-5)
    assert torch.equal(model(batch), before)
