import numpy as np
import pytest
import torch

from encoder.compact_vocabulary import compact_vocabulary_
from encoder.prediction import predict_logits


def test_inside_the_table_is_small_and_the_logits_are_equal(make_classifier, make_rows) -> None:
    model, rows = make_classifier(), make_rows([3, 4])
    before = predict_logits(model, rows)
    with compact_vocabulary_(model, [rows]) as (compact,):
        assert len(model.encoder.embeddings.word.weight) == len(np.unique(rows.input_ids))
        assert np.array_equal(predict_logits(model, compact), before)


def test_afterwards_the_trained_rows_are_in_place_and_the_others_as_they_were(
    make_classifier, make_rows
) -> None:
    model, rows = make_classifier(), make_rows([3, 4])
    old = model.encoder.embeddings.word.weight
    values = old.detach().clone()
    with pytest.raises(RuntimeError, match="stop"), compact_vocabulary_(model, [rows]):
        with torch.no_grad():
            model.encoder.embeddings.word.weight.add_(1.0)
        raise RuntimeError("stop")
    table = model.encoder.embeddings.word.weight
    assert table is old
    used = np.unique(rows.input_ids)
    unused = np.setdiff1d(np.arange(len(table)), used)
    assert torch.equal(table[used], values[used] + 1.0)
    assert torch.equal(table[unused], values[unused])


def test_a_frozen_table_is_left_alone(make_classifier, make_rows) -> None:
    model, rows = make_classifier(), make_rows([3, 4])
    model.encoder.embeddings.requires_grad_(False)
    with compact_vocabulary_(model, [rows]) as (same,):
        assert same is rows and len(model.encoder.embeddings.word.weight) == model.config.vocab_size
