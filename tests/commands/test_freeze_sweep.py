"""Claims about what `enc freeze-sweep` prints."""

import json
import re

import pytest

from commands.app import run


@pytest.fixture(scope="module")
def arguments(tiny_model, reviews, tmp_path_factory):
    output = tmp_path_factory.mktemp("runs") / "my sweep"
    options = {"--model": tiny_model, "--data": reviews, "--output": output, "--points": "0,2"}
    options |= {"--num-epochs": 1, "--batch-size": 8, "--precision": "fp32"}
    return ["freeze-sweep", *(str(word) for pair in options.items() for word in pair), "--no-latency"]


def test_sweep_tells_where_it_is_and_what_it_found(arguments, capsys):
    assert run(arguments) == 0
    shown = capsys.readouterr()
    assert "Point 1 of 2: k = 0\n" in shown.err
    assert re.search(r"Point 2 of 2: k = 2 · about .* left\n", shown.err)
    assert re.search(r"k = 2: validation accuracy \d\.\d{4}\n", shown.err)
    assert "Point" not in shown.out
    assert re.search(r"^ 0 +[\d,]+ +\d\.\d{4} +\d\.\d{4} .*\(1\.00\)", shown.out, re.MULTILINE)
    for words in (
        "k: layers frozen",
        "Judged by the sampling error of 24 validation rows",
        "Try it: enc predict '",
    ):
        assert words in shown.out
    for text in (shown.out, shown.err):
        assert "\x1b" not in text
        assert "…" not in text
        assert all(line == line.rstrip() for line in text.splitlines())

    assert run([*arguments, "--resume", "--json"]) == 0
    again = capsys.readouterr()
    stored = json.loads(again.out)
    assert [point["k"] for point in stored["sweep"]["points"]] == [0, 2]
    assert "is finished; there is nothing to resume" in again.err


def test_kept_model_is_evaluated_and_listed_as_any_other(arguments, reviews, capsys):
    folder = arguments[arguments.index("--output") + 1]
    run([*arguments, "--resume"])
    capsys.readouterr()
    assert run(["evaluate", folder, "--data", str(reviews), "--json"]) == 0
    scores = json.loads(capsys.readouterr().out)["scores"]
    assert run(["runs", folder, "--json"]) == 0
    (entry,) = [one for one in json.loads(capsys.readouterr().out)["runs"] if one["folder"]]
    assert entry["command"] == "freeze-sweep"
    assert entry["score"]["value"] == scores["test"]["accuracy"]
