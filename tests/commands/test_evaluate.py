"""Claims about what `enc evaluate` prints."""

import json
import re
import shutil

from commands.app import run


def test_json_of_evaluate_is_a_result(finetuned, reviews, capsys):
    assert run(["evaluate", str(finetuned), "--data", str(reviews), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["command"] == "evaluate"
    assert result["scores"] == {"test": json.loads((finetuned / "run.json").read_text())["scores"]["test"]}


def test_labels_in_another_order_score_the_same(finetuned, reviews, tmp_path, capsys):
    lines = (reviews / "test.csv").read_text().splitlines()
    (tmp_path / "sorted.csv").write_text("\n".join([lines[0], *sorted(lines[1:], reverse=True)]) + "\n")
    shutil.copy(reviews / "test.csv", tmp_path / "as-is.csv")
    scores = []
    for name in ("sorted.csv", "as-is.csv"):
        assert run(["evaluate", str(finetuned), "--data", str(tmp_path / name), "--json"]) == 0
        scores.append(json.loads(capsys.readouterr().out)["scores"])
    assert scores[0] == scores[1]


def test_label_the_model_does_not_know_is_refused_with_its_line(finetuned, tmp_path, capsys):
    (tmp_path / "new.csv").write_text("text,label\ngood film,pos\ndull film,nge\n")
    assert run(["evaluate", str(finetuned), "--data", str(tmp_path / "new.csv")]) == 2
    assert re.search(r"new\.csv:3: .*'nge'.*did you mean 'neg'\?", capsys.readouterr().err)


def test_other_model_is_compared_in_words(finetuned, reviews, capsys):
    arguments = ["evaluate", str(finetuned), "--data", str(reviews), "--against", str(finetuned)]
    assert run(arguments) == 0
    shown, progress = capsys.readouterr()
    assert progress.endswith("Not kept. With --output DIR it is, as DIR/run.json, and enc runs lists it.\n")
    assert "95% interval" in shown
    assert f"No difference from {finetuned} that 24 rows can show." in shown
    assert "Both are right on the same rows." in shown


def test_split_that_is_not_there_is_refused(finetuned, reviews, capsys):
    data = str(reviews / "test.csv")
    assert run(["evaluate", str(finetuned), "--data", data, "--split", "validation"]) == 2
    assert "has only test" in capsys.readouterr().err
