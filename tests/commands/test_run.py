"""Claims about `enc run`."""

import json

import pytest

from commands.app import run

RECIPE = """
[chain]
description = "two steps"
latency = false

[[steps]]
command = "finetune"
num_epochs = 1
batch_size = 8

[[steps]]
command = "drop-layers"
layers = 2
"""


@pytest.fixture
def words(tmp_path, tiny_model, reviews, monkeypatch):
    monkeypatch.setattr("recipes.pruning.prove_reloaded", lambda *_: 0.0)
    (tmp_path / "two.toml").write_text(RECIPE)
    places = ["--model", str(tiny_model), "--data", str(reviews), "--output", str(tmp_path / "out")]
    return ["run", str(tmp_path / "two.toml"), *places]


def test_a_chain_is_told_step_by_step_and_ends_with_its_models(words, tmp_path, capsys):
    assert run(words) == 0
    shown = capsys.readouterr()
    assert "Step 1 (finetune) of 2" in shown.err and "Step 2 (drop-layers) of 2" in shown.err
    assert "  2 layers: " in shown.out and "kB instead of 133 kB" in shown.out
    assert "2 steps done of 2" in shown.out
    page = tmp_path / "out" / "report.html"
    assert shown.out.endswith(f"\n{page}\n") and "02-drop-layers" in page.read_text()
    assert run([*words, "--json"]) == 0
    shown = capsys.readouterr()
    assert shown.err.count("done before with the same options and inputs") == 2
    assert [step["folder"] for step in json.loads(shown.out)["steps"]] == ["01-finetune", "02-drop-layers"]
    assert (tmp_path / "out/02-drop-layers/model.safetensors").exists()


def test_a_failed_gate_is_exit_code_1(words, capsys):
    learnt = ("num_epochs=4", "learning_rate=0.003", "layer_decay=1")
    cut = ("layers=1", "strategy=top", "max_drop=0")
    settings = [f"finetune.{one}" for one in learnt] + [f"drop-layers.{one}" for one in cut]
    assert run([*words, *(word for one in settings for word in ("--set", one))]) == 1
    assert "step 2 (drop-layers) ended the chain: --max-drop 0 is not met" in capsys.readouterr().err


def test_mistakes_are_told_together(words, capsys):
    assert run([*words, "--set", "finetune.epochs=1", "--set", "drop-layers.layers=5"]) == 2
    told = capsys.readouterr().err
    assert "step 1 (finetune): unknown key --set finetune.epochs; did you mean 'num_epochs'?" in told
    assert "step 2 (drop-layers): layers 5: 01-finetune has 3 layers" in told


def test_an_interrupt_says_how_it_goes_on(words, capsys, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("recipes.finetune.finetune", interrupt)
    assert run(words) == 130
    assert "The same command goes on where it was." in capsys.readouterr().err
    assert run([*words, "--force"]) == 130
    assert "The same command, without --force, goes on where it was." in capsys.readouterr().err


def test_a_dry_run_shows_each_step_and_does_nothing(words, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("recipes.row_times._time_process", lambda *_: 1.0)
    assert run([*words, "--dry-run"]) == 0
    shown = capsys.readouterr().out
    monkeypatch.setenv("COLUMNS", "80")
    assert run([*words, "--dry-run"]) == 0
    assert " 02-drop-layers " in [line[:16] for line in capsys.readouterr().out.splitlines()]
    (first,) = (line for line in shown.splitlines() if line.startswith(" 01-finetune"))
    assert " 30,626 " in first and first.rstrip().endswith("s")
    assert "  02-drop-layers: enc drop-layers of 01-finetune, latency = false, layers = 2\n" in shown
    assert "80 train, 24 validation, 24 test rows" in shown
    assert not (tmp_path / "out").exists()
    assert run([*words, "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["steps"][1]["layers"] == 2
