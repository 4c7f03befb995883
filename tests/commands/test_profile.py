"""Claims about `enc profile` as a command, which here measures in earnest."""

import json

import pytest

from commands.app import run


def test_profile_of_a_tiny_model_has_every_part_at_every_length(finetuned, tmp_path, capsys):
    arguments = ["--sequence-lengths", "8,64", "--threads", "1", "--min-runs", "1", "--min-seconds", "0"]
    output = tmp_path / "profile"
    assert run(["profile", str(finetuned), *arguments, "--json", "--output", str(output)]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result == json.loads((output / "run.json").read_text())
    for row in result["profile"]["rows"]:
        assert sum(row["shares"].values()) == pytest.approx(1)
        assert sum(row["mac_shares"].values()) == pytest.approx(1)
    assert "prun" in result["advice"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--sequence-lengths", "65"], "holds 64 tokens at most"),
        (["--runtime", "onnx-fp32"], "--runtime is 'onnx-fp32'; expected one of torch-fp32, torch-bf16"),
        (["--min-runs", "0"], "--min-runs is '0'; expected a whole number above 0"),
    ],
)
def test_wrong_input_is_told(finetuned, arguments, message, capsys):
    assert run(["profile", str(finetuned), *arguments]) == 2
    assert message in capsys.readouterr().err
