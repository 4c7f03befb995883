"""Claims about `enc prune-heads`."""

import json

import pytest

from commands.app import run
from recipes.pruning_search import Chooser


@pytest.fixture
def words(finetuned, reviews, tmp_path, monkeypatch):
    monkeypatch.setattr("recipes.pruning.prove_reloaded", lambda *_: 0.0)
    return [
        "prune-heads",
        str(finetuned),
        *("--data", str(reviews), "--output", str(tmp_path / "out"), "--no-latency", "--repair-rows", "32"),
    ]


def test_result_is_shown_and_kept(words, tmp_path, capsys):
    assert run([*words, "--sparsity", "0.4"]) == 0
    shown = capsys.readouterr().out
    assert "5 of 12 heads removed (41.7%)" in shown
    assert "heads at random" in shown
    assert (tmp_path / "out" / "run.json").exists()


def test_json_is_run_json(words, tmp_path, capsys):
    assert run([*words, "--heads", "6", "--json"]) == 0
    assert capsys.readouterr().out == (tmp_path / "out" / "run.json").read_text()


def test_gate_that_fails_is_exit_code_one_with_its_reason(words, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(Chooser, "_drop", lambda self, model: 0.5)
    assert run([*words, "--max-drop", "1"]) == 1
    captured = capsys.readouterr()
    assert captured.err.endswith("falls by 50.00 points; that model was kept.\n")
    assert json.loads((tmp_path / "out" / "run.json").read_text())["pruning"]["failure"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "nothing says how much to remove; give one of --sparsity, --heads, --keep, or --max-drop"),
        (["--sparsity", "0.5", "--heads", "3"], "--sparsity and --heads both say what stays"),
        (["--keep", "0:1", "--steps", "2"], "--steps has no say where --keep names what stays"),
        (["--sparsity", "1.5"], "--sparsity is '1.5'; expected a number at least 0 and at most 1"),
        (
            ["--sparsity", "1"],
            "--sparsity 1 would leave no heads in any layer: the classifier reads",
        ),
        (["--sparsity", "0.99"], "at least 1 of 12 has to stay"),
        (["--heads", "0"], "--heads 0 would leave no heads in any layer"),
        (["--keep", "0:;1:;2:"], "--keep 0:;1:;2: would leave no heads in any layer"),
        (["--keep", "9:1"], "--keep: no layer 9; the model has 3, counted from 0"),
        (
            ["--heads", "5", "--normalize", "--scope", "layer"],
            "--normalize changes nothing where --scope is layer",
        ),
        (["--heads", "5", "--learning-rate", "1e-4"], "--learning-rate is for the training that"),
    ],
)
def test_mistakes_are_told(words, options, message, capsys):
    assert run([*words, *options]) == 2
    assert message in capsys.readouterr().err
