"""Claims about masked language models: the head, the loss, their training and their folders."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import encoder.training as training
from encoder.batches import Batch
from encoder.checkpoint import load_classifier, load_language_model, save_language_model
from encoder.language_model import MaskedLanguageModel, score_guesses
from encoder.masking import MaskedTokens, Masking
from encoder.model import initialise_
from encoder.model_folder import read_task, read_tokenizer
from encoder.task import Task
from encoder.training import train_
from encoder.training_config import TrainingConfig
from tests.padded import pack

MASKING = Masking(mask_token_id=4, special_ids=(0, 1, 2, 3, 4), vocab_size=50, probability=0.3)
LENGTHS = [12, 9, 15, 12, 12, 12, 7, 14, 16, 8] * 3


class Killed(BaseException):
    """As a signal would."""


def make_model(config, seed=0):
    model = MaskedLanguageModel(config)
    initialise_(model, config, seed)
    generator = torch.Generator().manual_seed(seed + 1)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator))
    return model.eval()


def settings(**changes):
    values = {
        "num_epochs": 2,
        "batch_size": 8,
        "learning_rate": 0.01,
        "layer_decay": 1.0,
        "best_metric": "loss",
    }
    return TrainingConfig.model_validate(values | {"best_metric": "loss"} | changes)


def train(model, rows, folder, *, masking=MASKING, on_progress=None, resume=False, **changes):
    return train_(
        model, rows, None, settings(**changes),
        work_folder=folder, resume=resume, on_progress=on_progress,
        objective=MaskedTokens(masking, rows),
        validate=lambda: score_guesses(model, rows, masking),
    )  # fmt: skip


@pytest.mark.parametrize("changes", [{}, {"embedding_size": 8}, {"norm": "pre"}])
def test_the_loss_is_that_of_dense_logits_at_the_hidden_places(make_config, make_rows, changes):
    model, rows = make_model(make_config(**changes)), make_rows(LENGTHS)
    index = np.arange(8)
    objective = MaskedTokens(MASKING, rows)
    batch = objective.prepare(Batch.from_rows(rows.select(index), multiple_of=32), index, 0)
    loss = objective.summed_loss(model(batch), batch, index)

    x = model.encoder(batch).last_hidden_state
    head, table = model.head, model.encoder.embeddings.word.weight
    x = F.layer_norm(
        F.gelu(x @ head.dense.weight.T + head.dense.bias), (len(table[0]),),
        head.norm.weight, head.norm.bias, model.config.layer_norm_eps,
    )  # fmt: skip
    logits = x @ table.T + head.bias
    targets = torch.full((len(x),), -100)
    targets[batch.masked] = batch.labels
    dense = F.cross_entropy(logits, targets, ignore_index=-100, reduction="sum")
    assert torch.allclose(loss, dense, rtol=1e-5)
    assert 0 < len(batch.masked) < len(x) / 2


def test_guesses_are_scored_as_one_would_by_hand(make_config, make_rows):
    model, rows = make_model(make_config()), make_rows(LENGTHS)
    found = score_guesses(model, rows, MASKING)
    hidden = MaskedTokens(replace(MASKING, seed=1 << 32), rows)
    index = np.arange(len(rows))
    batch = hidden.prepare(Batch.from_rows(rows), index, 0)
    with torch.no_grad():
        logits = model(batch)
    assert found["loss"] == pytest.approx(F.cross_entropy(logits, batch.labels).item(), rel=1e-5)
    assert found["perplexity"] == pytest.approx(math.exp(found["loss"]))
    assert found["accuracy"] == pytest.approx((logits.argmax(-1) == batch.labels).float().mean().item())
    assert score_guesses(model, rows, replace(MASKING, seed=5)) == found


def repeating(make_rows):
    """Rows whose every token follows from the one before: something that can be guessed."""
    rows = make_rows(LENGTHS)
    for start, stop in zip(rows.offsets[:-1], rows.offsets[1:], strict=True):
        rows.input_ids[start:stop] = 10 + (rows.input_ids[start] + np.arange(stop - start)) % 8
    return rows


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_training_learns_to_guess(make_config, make_rows, tmp_path, precision):
    model, rows = make_model(make_config()), repeating(make_rows)
    before = score_guesses(model, rows, MASKING)
    outcome = train(model, rows, tmp_path, num_epochs=15, precision=precision)
    losses = [epoch.validation["loss"] for epoch in outcome.epochs]
    assert min(losses) < 2.2 < 3.5 < before["loss"]
    assert (outcome.best_metric, outcome.best_epoch) == ("loss", 1 + int(np.argmin(losses)))
    assert score_guesses(model, rows, MASKING)["loss"] == pytest.approx(min(losses))
    assert not any("decoder" in name for name, _ in model.named_parameters())  # the table is the only one


@pytest.mark.parametrize("stop", [2, 5, 7])
def test_a_pretraining_killed_at_any_update_resumes_to_the_same_weights(
    make_config, make_rows, tmp_path, monkeypatch, stop
):
    monkeypatch.setattr(training, "SAVE_EVERY_S", 0.0)
    monkeypatch.setattr(training, "SAVE_SHARE", 0)
    monkeypatch.setattr(training, "READ_LOSS_EVERY", 1)
    rows, whole, again = make_rows(LENGTHS), make_model(make_config()), make_model(make_config())
    expected = train(whole, rows, tmp_path / "whole")

    def kill(progress):
        if progress.step == stop:
            raise Killed

    with pytest.raises(Killed):
        train(make_model(make_config()), rows, tmp_path, on_progress=kill)
    outcome = train(again, rows, tmp_path, resume=True)
    assert outcome.epochs == expected.epochs
    for name, parameter in whole.named_parameters():
        assert torch.equal(parameter, again.get_parameter(name)), name


def test_other_masking_is_another_run(make_config, make_rows, tmp_path):
    rows = make_rows(LENGTHS)
    train(make_model(make_config()), rows, tmp_path, num_epochs=1)
    with pytest.raises(training.EncError, match="another model, data set or options"):
        train(make_model(make_config()), rows, tmp_path, masking=replace(MASKING, probability=0.2),
              num_epochs=1, resume=True)  # fmt: skip


@pytest.fixture
def saved(tiny_model, tmp_path):
    """A language model in a folder, whose head was new."""
    model = load_language_model(tiny_model, seed=3)
    assert sorted(model.new_parameters) == sorted(f"head.{name}" for name, _ in model.head.named_parameters())
    with torch.no_grad():
        for parameter in model.head.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(0)))
    save_language_model(model, read_tokenizer(tiny_model), tmp_path / "mlm")
    return model, tmp_path / "mlm"


def batch_of(ids):
    return replace(pack(ids, torch.ones_like(ids)), masked=torch.arange(ids.numel()))


def test_transformers_guesses_with_equal_logits(saved):
    from transformers import AutoModelForMaskedLM

    ours, folder = saved
    theirs = AutoModelForMaskedLM.from_pretrained(folder).eval()
    tied = theirs.get_output_embeddings().weight
    assert torch.equal(tied, ours.encoder.embeddings.word.weight)
    assert tied is theirs.get_input_embeddings().weight
    ids = torch.randint(5, 40, (3, 11), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        expected = theirs(input_ids=ids).logits.flatten(0, 1)
        assert torch.allclose(ours(batch_of(ids)), expected, atol=1e-5)


@pytest.mark.parametrize("family", ["bert", "roberta", "distilbert", "electra", "camembert", "modernbert"])
def test_heads_of_transformers_are_read(family, tmp_path):
    import transformers

    small = {"vocab_size": 60, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2,
             "intermediate_size": 24, "max_position_embeddings": 40}  # fmt: skip
    if family == "distilbert":
        small = {"vocab_size": 60, "dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 24,
                 "max_position_embeddings": 40}  # fmt: skip
    if family == "electra":
        small["embedding_size"] = 8
    if family == "modernbert":
        small["pad_token_id"] = 0
    config = transformers.AutoConfig.for_model(family, **small)
    torch.manual_seed(0)
    theirs = transformers.AutoModelForMaskedLM.from_config(config).eval()
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    theirs.save_pretrained(tmp_path)
    ours = load_language_model(tmp_path)
    assert ours.new_parameters == ()
    ids = torch.randint(5, 60, (2, 9))
    with torch.no_grad():
        expected = theirs(input_ids=ids).logits.flatten(0, 1)
        assert torch.allclose(ours(batch_of(ids)), expected, atol=1e-4)


def test_a_saved_language_model_comes_back_and_can_be_fine_tuned(saved):
    ours, folder = saved
    again = load_language_model(folder)
    assert again.new_parameters == ()
    assert all(torch.equal(p, again.get_parameter(name)) for name, p in ours.named_parameters())
    assert read_task(folder) is None
    classifier = load_classifier(folder, task=Task(kind="single_label", labels=("a", "b")))
    assert all(name.startswith("classifier.") for name in classifier.new_parameters)
    for name, parameter in ours.encoder.named_parameters():
        assert torch.equal(parameter, classifier.encoder.get_parameter(name)), name


def test_a_shape_of_our_own_comes_back_too(make_config, tiny_model, tmp_path):
    tokenizer = read_tokenizer(tiny_model)
    model = make_model(make_config(norm="pre", vocab_size=tokenizer.vocab_size, max_position_embeddings=64))
    save_language_model(model, tokenizer, tmp_path)
    again = load_language_model(tmp_path)
    assert again.config == model.config
    assert all(torch.equal(p, again.get_parameter(name)) for name, p in model.named_parameters())
    assert load_classifier(tmp_path, task=Task(kind="regression")).config == model.config
