"""Each family with random weights: logits, gradients and states are those of Transformers."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from encoder import huggingface
from encoder.batches import Batch
from encoder.checkpoint import load_classifier
from encoder.prediction import predict_logits
from encoder.task import Task
from tests.encoder.oracle import (
    CASES,
    FAMILIES,
    LABELS,
    LENGTHS,
    MODERNBERT,
    NO_DROPOUT,
    TOLERANCE,
    assert_close,
    inputs_of,
    logits_of,
    make_rows,
    padded,
    tame,
    theirs,
)


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Any:
    family, options = CASES[request.param]
    return theirs(family, options)


@pytest.fixture(params=FAMILIES)
def model(request: pytest.FixtureRequest) -> Any:
    family, options = FAMILIES[request.param]
    return theirs(family, options)


@pytest.mark.parametrize("pair", [False, True], ids=["single", "pair"])
def test_logits_are_those_of_transformers_in_a_batch_and_alone(case: Any, pair: bool, tmp_path: Path) -> None:
    case.save_pretrained(tmp_path)
    ours = load_classifier(tmp_path)
    rows = make_rows(case, pair=pair)
    expected = logits_of(case, rows)
    assert_close(predict_logits(ours, rows), expected)
    assert_close(predict_logits(ours, rows, batch_size=1), expected)
    assert ours.task == Task(kind="single_label", labels=LABELS)


@pytest.mark.parametrize("pair", [False, True], ids=["single", "pair"])
@pytest.mark.parametrize(("precision", "tolerance"), [("fp32", 1e-5), ("bf16", 0.05)])
def test_logits_of_a_row_do_not_change_with_its_batch(
    case: Any, pair: bool, precision: Any, tolerance: float, tmp_path: Path
) -> None:
    if precision == "bf16":
        tame(case)
    case.save_pretrained(tmp_path)
    ours = load_classifier(tmp_path)
    rows = make_rows(case, [*LENGTHS, 0, 30, *LENGTHS[::-1], 1, 36], pair=pair)
    alone = predict_logits(ours, rows, batch_size=1, precision=precision)
    for batch_size in (2, 3, len(rows)):  # the last: padded in parts
        together = predict_logits(ours, rows, batch_size=batch_size, precision=precision)
        assert_close(together, alone, tolerance)
    order = np.random.default_rng(0).permutation(len(rows))
    shuffled = predict_logits(ours, rows.select(order), batch_size=11, precision=precision)
    assert_close(shuffled, alone[order], tolerance)


def test_gradients_are_those_of_transformers(model: Any, tmp_path: Path) -> None:
    model = theirs(model.config.model_type, FAMILIES[model.config.model_type][1], **NO_DROPOUT)
    model.save_pretrained(tmp_path)
    ours = load_classifier(tmp_path).train()
    rows = make_rows(model, pair=True)
    labels = torch.arange(len(rows)) % len(LABELS)
    torch.nn.functional.cross_entropy(ours(Batch.from_rows(rows)), labels).backward()
    model.train()(**inputs_of(model, rows), labels=labels).loss.backward()
    expected = {name: parameter.grad for name, parameter in model.named_parameters()}
    compared = set()
    for module, parts in huggingface.parameter_names(ours.config).items():
        if module.startswith("head"):  # of a language model
            continue
        for kind, parameter in ours.get_submodule(module).named_parameters():
            assert parameter.grad is not None
            for part, gradient in zip(parts, parameter.grad.chunk(len(parts)), strict=True):
                assert_close(gradient, expected[f"{part}.{kind}"])
                compared.add(f"{part}.{kind}")
    assert compared == expected.keys()


def test_hidden_states_and_attentions_are_those_of_transformers(model: Any, tmp_path: Path) -> None:
    model.set_attn_implementation("eager")
    model.save_pretrained(tmp_path)
    rows = make_rows(model, pair=True)
    with torch.no_grad():
        expected = model(**inputs_of(model, rows), output_hidden_states=True, output_attentions=True)
        found = load_classifier(tmp_path).encoder(
            Batch.from_rows(rows), output_hidden_states=True, output_attentions=True
        )
    exists = padded(rows, 0)["attention_mask"] == 1
    assert len(found.hidden_states) == len(expected.hidden_states) == model.config.num_hidden_layers + 1
    for ours, other in zip(found.hidden_states, expected.hidden_states, strict=True):
        assert_close(ours, other[exists])
    assert len(found.attentions) == len(expected.attentions) == model.config.num_hidden_layers
    for ours, other in zip(found.attentions, expected.attentions, strict=True):
        assert_close(ours.transpose(1, 2)[exists], other.transpose(1, 2)[exists])


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_row_without_tokens_gives_no_nan_and_changes_no_other(
    model: Any, precision: Any, tmp_path: Path
) -> None:
    model.save_pretrained(tmp_path)
    ours = load_classifier(tmp_path)
    rows = make_rows(model, [4, 0, 30, 1])
    logits = predict_logits(ours, rows, precision=precision)
    assert np.isfinite(logits).all()
    others = predict_logits(ours, rows.select([0, 2, 3]), precision=precision)
    assert_close(logits[[0, 2, 3]], others, TOLERANCE if precision == "fp32" else 0.05)
    assert np.isfinite(predict_logits(ours, rows.select([1, 1]), precision=precision)).all()


def test_bf16_with_heavy_padding_is_close_and_free_of_nan(model: Any, tmp_path: Path) -> None:
    tame(model)
    model.save_pretrained(tmp_path)
    ours = load_classifier(tmp_path)
    rows = make_rows(model, [1, 2, 36, 1, 1, 3])
    logits = predict_logits(ours, rows, precision="bf16")
    assert logits.dtype == np.float32
    assert_close(logits, logits_of(model, rows), 0.03)


def test_modernbert_of_texts_much_longer_than_its_window_is_that_of_transformers(tmp_path: Path) -> None:
    model = theirs("modernbert", MODERNBERT | {"max_position_embeddings": 600})
    model.save_pretrained(tmp_path)
    ours = load_classifier(tmp_path)
    for lengths in ([512], [500, 3, 130, 7]):  # in tiles; some rows in blocks
        rows = make_rows(model, lengths)
        assert_close(predict_logits(ours, rows), logits_of(model, rows))
