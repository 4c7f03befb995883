"""Claims about what `enc finetune` and `enc evaluate` print."""

import json
import re
import shutil

from commands.app import run


def test_json_is_all_that_is_on_stdout_and_equals_run_json(finetuned, tiny_model, reviews, capsys):
    arguments = ["--model", tiny_model, "--data", reviews, "--output", finetuned, "--resume", "--json"]
    assert run(["finetune", *map(str, arguments)]) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out) == json.loads((finetuned / "run.json").read_text())
    assert "is finished; there is nothing to resume" in shown.err


def test_json_of_evaluate_is_a_result(finetuned, reviews, capsys):
    assert run(["evaluate", str(finetuned), "--data", str(reviews), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["command"] == "evaluate"
    assert result["scores"] == {"test": json.loads((finetuned / "run.json").read_text())["scores"]["test"]}


def test_run_tells_what_it_read_froze_trained_and_wrote(tiny_model, reviews, tmp_path, capsys):
    output = tmp_path / "my runs"
    arguments = ["--model", tiny_model, "--data", reviews, "--output", output, "--freeze-layers", 1]
    assert run(["finetune", *map(str, arguments), "--num-epochs", "1", "--no-latency"]) == 0
    shown = capsys.readouterr()
    assert re.search(r"in all +80 +24 +24", shown.err)
    assert re.search(r"pos +40 +12 +12", shown.err)
    assert "single-label" in shown.err
    assert "without dropout" in shown.err
    assert "epoch 1/1 · loss" in shown.err
    assert re.search(r"test +\d\.\d{4} +\d\.\d{4} +-?\d\.\d{4} +24", shown.out)
    for fact in ("trained", "frozen", "training", "peak memory", "size", str(output)):
        assert fact in shown.out
    assert "Try it: enc predict '" in shown.out  # quoted for the shell: the folder's name has a blank
    for text in (shown.out, shown.err):
        assert "\x1b" not in text
        assert "…" not in text
        assert all(line == line.rstrip() for line in text.splitlines())


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


def test_split_that_is_not_there_is_refused(finetuned, reviews, capsys):
    data = str(reviews / "test.csv")
    assert run(["evaluate", str(finetuned), "--data", data, "--split", "validation"]) == 2
    assert "has only test" in capsys.readouterr().err
