"""What is watched is what Transformers says is there."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertForSequenceClassification

from compress.distillation import Distillation, DistillationConfig, Weights
from compress.teacher import compute_targets
from compress.watching import Points, watched
from encoder.batches import Batch
from encoder.checkpoint import load_classifier
from encoder.prediction import predict_logits
from encoder.training import train_
from encoder.training_config import TrainingConfig

LENGTHS = [7, 1, 12, 4]
LAYERS = 12


@pytest.fixture(scope="module")
def theirs():
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=50,
        hidden_size=16,
        num_hidden_layers=LAYERS,
        num_attention_heads=4,
        intermediate_size=24,
        max_position_embeddings=40,
        initializer_range=0.3,
        num_labels=3,
    )
    return BertForSequenceClassification(config).eval()


@pytest.fixture(scope="module")
def ours(theirs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("bert")
    theirs.save_pretrained(folder)
    return load_classifier(folder)


def padded(rows):
    ids = torch.zeros(len(rows), int(rows.lengths.max()), dtype=torch.int64)
    mask = torch.zeros_like(ids)
    types = torch.zeros_like(ids)
    for row, (start, stop) in enumerate(zip(rows.offsets[:-1], rows.offsets[1:], strict=True)):
        ids[row, : stop - start] = torch.from_numpy(rows.input_ids[start:stop].astype("int64"))
        types[row, : stop - start] = torch.from_numpy(rows.token_type_ids[start:stop].astype("int64"))
        mask[row, : stop - start] = 1
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}


def test_twelve_layers_have_thirteen_hidden_states_numbered_as_in_transformers(ours, theirs, rows_of):
    rows = rows_of(LENGTHS)
    inputs = padded(rows)
    with torch.no_grad():
        expected = theirs(**inputs, output_hidden_states=True).hidden_states
        with watched(ours, Points(hidden=frozenset(range(LAYERS + 1)))) as seen:
            ours(Batch.from_rows(rows))
    assert len(expected) == len(seen.hidden) == LAYERS + 1
    exists = inputs["attention_mask"].bool()
    for number in range(LAYERS):
        torch.testing.assert_close(seen.hidden[number], expected[number][exists], atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(seen.hidden[LAYERS], expected[LAYERS][:, 0], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("layer", [0, 5, LAYERS - 1])
def test_projections_are_queries_keys_and_values_of_all_tokens_also_in_the_last_layer(
    ours, theirs, rows_of, layer
):
    rows = rows_of(LENGTHS)
    inputs = padded(rows)
    exists = inputs["attention_mask"].bool()
    with torch.no_grad():
        states = theirs(**inputs, output_hidden_states=True).hidden_states[layer][exists]
        attention = theirs.bert.encoder.layer[layer].attention.self
        expected = torch.cat([part(states) for part in (attention.query, attention.key, attention.value)], 1)
        with watched(ours, Points(projections=frozenset({layer}))) as seen:
            ours(Batch.from_rows(rows))
    torch.testing.assert_close(seen.projections[layer], expected, atol=1e-5, rtol=1e-4)


def test_nothing_is_kept_of_predictions_or_after_the_context(ours, rows_of):
    rows = rows_of(LENGTHS)
    with watched(ours, Points(frozenset({0, LAYERS}), frozenset({0}))) as seen:
        predict_logits(ours, rows)
        assert not seen.hidden and not seen.projections
    with torch.no_grad():
        ours(Batch.from_rows(rows))
    assert not seen.hidden and not seen.projections


def test_in_bf16_relations_reach_the_queries_of_a_last_layer(ours, rows_of, tmp_path):
    """Those of tokens that are not the first are computed for the loss alone."""
    model = copy.deepcopy(ours)
    rows = replace(rows_of([5, 9, 3, 7]), labels=np.array([0, 1, 2, 0]))
    qkv, width = model.encoder.layers[-1].attention.qkv, model.config.hidden_size
    before = qkv.weight.detach().clone()
    loss = DistillationConfig(weights=Weights(relations=1.0), layers=(LAYERS - 1, LAYERS - 2))
    targets = compute_targets(ours, rows, loss.teacher_points, precision="fp32")
    config = TrainingConfig(num_epochs=1, learning_rate=0.01, weight_decay=0.0, precision="bf16")
    with watched(model, loss.student_points) as seen:
        objective = Distillation(
            loss, model.task, seen, targets, rows.labels, num_labelled=4, widths=(width, width)
        )
        train_(model, rows, None, config, work_folder=tmp_path, objective=objective)
    moved = (qkv.weight.detach() - before).abs().unflatten(0, (3, width)).amax((1, 2))
    assert (moved > 1e-3).all()  # queries, keys and values
