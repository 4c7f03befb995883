"""Claims about `enc export`."""

import json

import pytest

from commands.app import run


@pytest.fixture
def words(finetuned, reviews, tmp_path):
    return [
        "export",
        str(finetuned),
        "--data",
        str(reviews),
        "--output",
        str(tmp_path / "out"),
        "--no-latency",
    ]


def test_result_is_shown_and_the_folder_predicts(words, tmp_path, capsys):
    assert run(words) == 0
    shown = capsys.readouterr().out
    assert "difference of logits, test" in shown
    assert "rows with the same labels" in shown
    assert f"enc predict {tmp_path / 'out'}" in shown
    assert run(["predict", str(tmp_path / "out"), "good lovely great", "bad awful dull"]) == 0
    labels = [json.loads(line)["label"] for line in capsys.readouterr().out.splitlines()]
    assert labels == ["pos", "neg"]


def test_json_is_run_json(words, tmp_path, capsys):
    assert run([*words, "--json"]) == 0
    assert capsys.readouterr().out == (tmp_path / "out" / "run.json").read_text()


def test_proof_that_fails_is_exit_code_one_with_its_reason(words, tmp_path, capsys):
    """E4."""
    assert run([*words, "--tolerance", "1e-12"]) == 1
    captured = capsys.readouterr()
    assert "Failed: Logits of the 24 test rows differ from torch's by up to" in captured.out
    assert captured.err.endswith(
        f"Nothing is in {tmp_path / 'out'}; what failed is in {tmp_path / 'out'}.failed.\n"
    )
    assert not (tmp_path / "out").exists()
    assert run(["predict", str(tmp_path / "out.failed"), "a"]) == 2
    assert "the export of this model failed" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--precision", "int4"], "--precision is 'int4'; expected one of fp32, fp16, int8"),
        (["--opset", "12"], "opset 12: expected 17"),
        (
            ["--format", "transformers", "--opset", "17"],
            "--opset is about an ONNX graph, and --format transformers",
        ),
        (
            ["--precision", "int8", "--tolerance", "1"],
            "--tolerance is of no use",
        ),
        (["--any-cpu"], "--any-cpu is about int8, and --precision is fp32"),
        (["--calibration-rows", "9"], "--calibration-rows is about int8"),
        (["--max-drop", "-1"], "--max-drop is '-1'; expected a number at least 0"),
    ],
)
def test_mistakes_are_told(words, options, message, capsys):
    assert run([*words, *options]) == 2
    assert message in capsys.readouterr().err
