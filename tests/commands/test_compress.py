"""Claims about `enc compress`."""

import json

import pytest

from commands.app import run
from compress.size import TORCH_FOLDER
from tests.planted_times import plant


@pytest.fixture
def words(finetuned, reviews, tmp_path, monkeypatch):
    plant(monkeypatch)
    return ["compress", str(finetuned), "--data", str(reviews), "--output", str(tmp_path / "out")]


def test_table_candidates_and_verdict_are_shown_and_the_folder_predicts(words, tmp_path, capsys):
    goal = ("--target-speedup", "3.5", "--max-candidates", "0")
    assert run([*words, *goal]) == 0
    shown = capsys.readouterr().out
    assert "4 heads" in shown
    assert "64 neurons" in shown
    lines = " ".join(shown.split())
    assert "the original takes 12.00 ms in torch in fp32; candidates are planned for 3.43 ms." in lines
    (line,) = (line for line in shown.splitlines() if "chosen" in line)
    assert line.split("  ")[0].strip() == "3 layers, int8"
    assert "Pareto" in line
    assert "Goal met: at most 1.00 points of validation score lost, --target-speedup 3.5." in shown
    assert "Chosen: 3 layers, int8; it loses nothing" in shown
    assert run(["predict", str(tmp_path / "out"), "good lovely great", "bad awful dull"]) == 0
    labels = [json.loads(line)["label"] for line in capsys.readouterr().out.splitlines()]
    assert labels == ["pos", "neg"]


def test_goal_that_cannot_be_met_is_exit_code_one_with_the_nearest_kept(words, tmp_path, capsys):
    assert run([*words, "--target-speedup", "50", "--max-candidates", "0"]) == 1
    captured = capsys.readouterr()
    assert "Goal not met: " in captured.out
    assert "Nearest, and kept: " in captured.out
    assert captured.err.splitlines()[-1].startswith("--target-speedup 50 cannot be met: the fastest")
    assert captured.err.endswith(f"; the nearest is in {tmp_path / 'out'}.\n")
    assert run(["predict", str(tmp_path / "out"), "good"]) == 0


def test_json_is_run_json_and_the_candidates_are_in_it(words, tmp_path, capsys):
    assert run([*words, "--target-ms", "3.5", "--max-candidates", "0", "--json"]) == 0
    text = capsys.readouterr().out
    assert text == (tmp_path / "out" / "run.json").read_text()
    candidates = json.loads(text)["compress"]["candidates"]
    keys = {"name", "layers", "heads", "neurons", "precision", "score", "latency_ms", "predicted_ms"}
    assert all(keys | {"size_bytes", "pareto", "chosen"} <= set(one) for one in candidates)
    assert sum(one["chosen"] for one in candidates) == 1


def test_a_trained_model_in_torch_is_named_to_go_on_with(words, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("recipes.compress_search.Search._ready", lambda self: [])
    more = ("--max-drop", "100", "--num-epochs", "1", "--target-speedup", "8")
    assert run([*words, *more, "--max-candidates", "1"]) == 0
    shown = capsys.readouterr().out
    assert f"In torch, to go on with: {tmp_path / 'out' / TORCH_FOLDER}" in shown
    assert "1 candidate trained for 1 epoch at most." in shown
    assert run(["runs", str(tmp_path)]) == 0
    listed = capsys.readouterr().out
    assert f"out/{TORCH_FOLDER}" in listed


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "nothing says how fast it has to be; give --target-speedup or --target-ms"),
        (["--target-speedup", "0"], "--target-speedup is '0'; expected a number above 0"),
        (
            ["--target-speedup", "2", "--target-ms", "3"],
            "--target-speedup and --target-ms both say how fast it has to be; give one",
        ),
        (
            ["--target-ms", "3", "--max-candidates", "0", "--num-epochs", "2"],
            "--num-epochs is for the training of candidates, and --max-candidates is 0",
        ),
        (
            ["--target-ms", "3", "--max-drop", "-1"],
            "--max-drop is '-1'; expected a number at least 0 and at most 100",
        ),
        (
            ["--target-ms", "3", "--max-drop", "101"],
            "--max-drop is '101'; expected a number at least 0 and at most 100",
        ),
    ],
)
def test_mistakes_are_told(words, options, message, capsys):
    assert run([*words, *options]) == 2
    assert message in capsys.readouterr().err
