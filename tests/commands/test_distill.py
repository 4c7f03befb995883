"""Claims about `enc distill`."""

import json

import pytest

from commands.app import run


@pytest.fixture
def words(finetuned, reviews, tmp_path):
    return ["distill", str(finetuned), "--data", str(reviews), "--output", str(tmp_path / "out")]


def test_teacher_student_and_control_stand_side_by_side(words, capsys):
    assert run([*words, "--layers", "2", "--num-epochs", "1", "--no-latency"]) == 0
    shown = capsys.readouterr()
    assert "3 layers taught 2, which started from the teacher's layers 0, 2." in shown.out
    (header,) = (
        line for line in shown.out.splitlines() if "control" in line and "student to teacher" in line
    )
    assert header.split()[:2] == ["teacher", "student"]
    assert "agreement with the teacher" in shown.out
    assert "Student and control on test rows:" in shown.out
    assert "The student's layers 0–1 start from the teacher's 0, 2." in shown.err


def test_json_is_the_result(words, capsys):
    assert run([*words, "--layers", "1", "--num-epochs", "1", "--no-latency", "--no-control", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["command"] == "distill"
    assert result["distillation"]["init_layers"] == [2]
    assert result["distillation"]["control"] is None


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (
            (),
            "nothing says what the student is; give --layers, --init-layers (as 1,3,5), --student or",
        ),
        (("--layers", "2", "--init-layers", "every"), "--init-layers is 'every'; expected one of alternate"),
        (("--layers", "2", "--init-layers", "0,1,2"), "--init-layers names 3 layers, --layers is 2"),
        (("--layers", "2", "--init-layers", "2,0"), "whole numbers from 0 up, rising"),
        (("--student", "x", "--layers", "2"), "--layers has no say where --student is a model of its own"),
        (("--hidden-size", "8", "--init-layers", "0"), "--init-layers is for a student made of"),
        (("--layers", "2", "--progressive", "4"), "--progressive is 4, and each step needs an epoch"),
        (("--init-layers", "0", "--progressive", "2"), "--progressive chooses the layers of each step"),
        (
            ("--layers", "2", "--preset", "logits", "--soft-weight", "0", "--hard-weight", "0"),
            "all weights are 0: there is nothing to learn",
        ),
        (("--layers", "2", "--hard-weight", "-1"), "--hard-weight is '-1'; expected a number at least 0"),
        (
            ("--layers", "2", "--preset", "logits", "--hidden-loss", "cosine"),
            "--hidden-loss has no say without",
        ),
        (
            ("--layers", "2", "--relation-heads", "4"),
            "--relation-heads has no say without --relations-weight",
        ),
        (
            ("--layers", "2", "--preset", "logits", "--soft-weight", "0", "--unlabeled", "x.txt"),
            "--unlabeled texts teach nothing where only labels count",
        ),
        (("--layers", "2", "--preset", "logit"), "did you mean 'logits'?"),
    ],
)
def test_mistakes_are_told(words, capsys, more, message):
    assert run([*words, *more]) == 2
    assert message in capsys.readouterr().err
