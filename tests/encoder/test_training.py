import math
from pathlib import Path

import numpy as np
import pytest
import torch

import encoder.training as training
from encoder.engine import ALL_ON
from encoder.errors import ConfigError, EncError
from encoder.freezing import Freezing, freeze_
from encoder.objective import Supervised
from encoder.processes import ALONE
from encoder.task import Task
from encoder.training import load_best_, train_
from encoder.training_config import TrainingConfig
from encoder.updates import Updates

LENGTHS = [3, 9, 5, 5, 12, 2, 7, 4, 6, 8] * 4


class Killed(BaseException):
    """As a signal would: no handler of ours sees it."""


def config(**changes: object) -> TrainingConfig:
    return TrainingConfig.model_validate({"num_epochs": 2, "batch_size": 8, "learning_rate": 0.01} | changes)


def weights(model) -> dict[str, torch.Tensor]:
    return {name: p.detach().clone() for name, p in model.named_parameters()}


def assert_equal(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> None:
    assert a.keys() == b.keys()
    assert [name for name in a if not torch.equal(a[name], b[name])] == []


def planted(make_rows, seed: int = 0):
    """Rows whose class is said by their first token: something that can be learnt."""
    rows = make_rows(LENGTHS, seed=seed)
    rows.input_ids[rows.offsets[:-1]] = rows.labels + 1
    return rows


def test_training_learns_and_keeps_the_best_epoch(make_classifier, make_rows, tmp_path: Path) -> None:
    model = make_classifier()
    train, validation = planted(make_rows), planted(make_rows, seed=1)
    outcome = train_(model, train, validation, config(num_epochs=12), work_folder=tmp_path)
    scores = [epoch.validation["accuracy"] for epoch in outcome.epochs if epoch.validation]
    assert max(scores) > 0.9
    assert outcome.best_epoch == max(i for i, s in enumerate(scores, 1) if s == max(scores))
    logits = training.predict_logits(model, validation)
    assert (logits.argmax(1) == validation.labels).mean() == max(scores)
    assert not model.training


def test_the_same_seed_gives_the_same_weights_and_another_does_not(
    make_classifier, make_rows, tmp_path: Path
) -> None:
    def run(seed: int, name: str) -> dict[str, torch.Tensor]:
        model = make_classifier()
        train_(model, planted(make_rows), None, config(seed=seed), work_folder=tmp_path)
        return weights(model)

    first = run(0, "a")
    assert_equal(first, run(0, "b"))
    assert not torch.equal(first["classifier.dense.weight"], run(1, "c")["classifier.dense.weight"])


@pytest.mark.parametrize("stop", [1, 4, 5, 6, 9])
def test_a_run_killed_at_any_update_resumes_to_the_same_weights(
    make_classifier, make_rows, tmp_path: Path, monkeypatch, stop: int
) -> None:
    monkeypatch.setattr(training, "SAVE_EVERY_S", 0.0)
    monkeypatch.setattr(training, "SAVE_SHARE", 0)
    monkeypatch.setattr(training, "READ_LOSS_EVERY", 2)
    train, validation = planted(make_rows), planted(make_rows, seed=1)
    whole = make_classifier()
    expected = train_(whole, train, validation, config(), work_folder=tmp_path / "whole")

    def kill(progress: training.TrainingProgress) -> None:
        if progress.step == stop:
            raise Killed

    with pytest.raises(Killed):
        train_(make_classifier(), train, validation, config(), work_folder=tmp_path, on_progress=kill)
    model = make_classifier(seed=9)  # whatever it holds, the state decides
    model.load_state_dict(make_classifier().state_dict())
    outcome = train_(model, train, validation, config(), work_folder=tmp_path, resume=True)
    assert_equal(weights(model), weights(whole))
    assert outcome.epochs == expected.epochs and outcome.best_epoch == expected.best_epoch
    if stop > 5:
        assert outcome.resumed_from_step is not None and outcome.resumed_from_step >= 5


def test_a_finished_run_resumes_without_training_again(make_classifier, make_rows, tmp_path: Path) -> None:
    train = planted(make_rows)
    model = make_classifier()
    train_(model, train, None, config(), work_folder=tmp_path)
    steps: list[int] = []
    again = make_classifier()
    train_(again, train, None, config(), work_folder=tmp_path, resume=True,
           on_progress=lambda p: steps.append(p.step))  # fmt: skip
    assert steps == []
    assert_equal(weights(again), weights(model))


@pytest.mark.parametrize("layers", [0, 2])
def test_best_weights_can_be_had_again_from_the_folder(make_classifier, make_rows, tmp_path, layers) -> None:
    train, validation = planted(make_rows), planted(make_rows, seed=1)
    model, again = make_classifier(), make_classifier()
    for one in (model, again):
        freeze_(one, Freezing(layers=layers))
    train_(model, train, validation, config(), work_folder=tmp_path)
    (tmp_path / "training-state.pt").unlink()
    load_best_(again, [train, validation], tmp_path)
    assert_equal(weights(again), weights(model))


@pytest.mark.parametrize("change", ["config", "data", "frozen"])
def test_the_state_of_another_run_is_refused(make_classifier, make_rows, tmp_path: Path, change: str) -> None:
    train_(make_classifier(), planted(make_rows), None, config(), work_folder=tmp_path)
    model = make_classifier()
    if change == "frozen":
        freeze_(model, Freezing(layers=1))
    rows = planted(make_rows, seed=2 if change == "data" else 0)
    other = config(learning_rate=0.02) if change == "config" else config()
    with pytest.raises(ConfigError, match="another model, data set or options"):
        train_(model, rows, None, other, work_folder=tmp_path, resume=True)


@pytest.mark.parametrize(
    "freezing",
    [
        Freezing(layers=2),
        Freezing(embeddings=True),
        Freezing(classifier_only=True),
        Freezing(patterns=("*qkv*",)),
    ],
)
@pytest.mark.parametrize("recompute", [False, True])
def test_frozen_weights_are_bit_identical_and_all_others_move(
    make_classifier, make_rows, tmp_path: Path, monkeypatch, freezing, recompute
) -> None:
    if recompute:  # D9: recomputing activations must not cut the gradient off above frozen layers
        monkeypatch.setattr("encoder.attention.MAX_KEPT_WEIGHTS", 0)
    model = make_classifier()
    before = weights(model)
    freeze_(model, freezing)
    train_(model, planted(make_rows), None, config(), work_folder=tmp_path)
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter, before[name]) != parameter.requires_grad, name


def test_the_optimizer_holds_only_what_trains(make_classifier, make_rows, tmp_path: Path) -> None:
    model = make_classifier()
    freeze_(model, Freezing(layers=3))
    rows = planted(make_rows)
    updates = Updates(model, rows, Supervised(model.task, rows.labels), config(),
                      device="cpu", engine=ALL_ON, rounded={}, processes=ALONE)  # fmt: skip
    held = sum(p.numel() for group in updates.optimizer.param_groups for p in group["params"])
    assert held == sum(p.numel() for p in model.classifier.parameters())


def test_accumulated_batches_equal_one_large_batch(
    make_config, make_classifier, make_rows, tmp_path: Path
) -> None:
    rows = planted(make_rows).select(range(32))
    results = []
    for size, steps in ((32, 1), (8, 4)):
        model = make_classifier(
            make_config(hidden_dropout=0.0, attention_dropout=0.0, classifier={"dropout": 0.0})
        )
        changes = {"batch_size": size, "accumulation_steps": steps, "class_weights": "balanced"}
        outcome = train_(model, rows, None, config(**changes), work_folder=tmp_path / str(size))
        results.append((weights(model), outcome.epochs[0].loss))
    assert math.isclose(results[0][1], results[1][1], rel_tol=1e-4)
    for name, value in results[0][0].items():
        assert torch.allclose(value, results[1][0][name], atol=2e-3), name


@pytest.mark.parametrize(
    ("scores", "best", "epochs"),
    [
        ([0.5, 0.9, 0.9, 0.8, 0.9, 0.9], 3, 4),  # an equal score is kept, but does not put off the end
        ([0.5, 0.6, 0.7, 0.7, 0.8, 0.1], 5, 6),
        ([math.nan, 0.5, math.nan, 0.4, 0.9, 0.9], 2, 4),
    ],
)
def test_training_stops_without_a_better_score_and_keeps_the_latest_of_the_best(
    make_classifier, make_rows, tmp_path: Path, monkeypatch, scores, best, epochs
) -> None:
    given = iter(scores)
    monkeypatch.setattr(training, "score", lambda *_: {"accuracy": next(given)})
    outcome = train_(
        make_classifier(), planted(make_rows), planted(make_rows, seed=1),
        config(num_epochs=6, early_stopping_patience=2), work_folder=tmp_path,
    )  # fmt: skip
    assert (outcome.best_epoch, len(outcome.epochs)) == (best, epochs)
    assert outcome.stopped_early == (epochs < 6)


def test_a_loss_that_is_not_finite_ends_training_with_advice(
    make_classifier, make_rows, tmp_path: Path
) -> None:
    model = make_classifier()
    with torch.no_grad():
        model.classifier.output.bias.fill_(math.nan)
    with pytest.raises(EncError, match=r"diverged.*lower --learning-rate"):
        train_(model, planted(make_rows), None, config(), work_folder=tmp_path)


@pytest.mark.parametrize("kind", ["multi_label", "regression"])
def test_every_kind_of_task_trains(make_classifier, make_rows, tmp_path: Path, kind) -> None:
    rows = planted(make_rows)
    if kind == "multi_label":
        task = Task(kind=kind, labels=("a", "b", "c"))
        labels = np.eye(3, dtype=np.float32)[rows.labels]
    else:
        task, labels = Task(kind=kind), rows.labels.astype(np.float32)
    rows = type(rows)(rows.input_ids, rows.token_type_ids, rows.offsets, labels)
    model = make_classifier(task=task)
    outcome = train_(model, rows, rows, config(num_epochs=8), work_folder=tmp_path)
    metric = {"multi_label": "micro_f1", "regression": "pearson"}[kind]
    assert outcome.best_metric == metric
    assert max(e.validation[metric] for e in outcome.epochs if e.validation) > 0.8


def test_the_callers_random_state_is_untouched(make_classifier, make_rows, tmp_path: Path) -> None:
    before = torch.get_rng_state()
    train_(make_classifier(), planted(make_rows), None, config(), work_folder=tmp_path)
    assert torch.equal(torch.get_rng_state(), before)


def test_bf16_trains_fp32_weights(make_classifier, make_rows, tmp_path: Path) -> None:
    model = make_classifier()
    outcome = train_(model, planted(make_rows), planted(make_rows, seed=1),
                     config(num_epochs=12, precision="bf16"), work_folder=tmp_path)  # fmt: skip
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    assert max(e.validation["accuracy"] for e in outcome.epochs if e.validation) > 0.9


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_training_runs_on_a_gpu(make_classifier, make_rows, tmp_path: Path) -> None:
    model = make_classifier()
    outcome = train_(model, planted(make_rows), planted(make_rows, seed=1),
                     config(num_epochs=12), work_folder=tmp_path, device="cuda")  # fmt: skip
    assert max(e.validation["accuracy"] for e in outcome.epochs if e.validation) > 0.9
