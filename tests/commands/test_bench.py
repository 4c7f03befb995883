"""Claims about `enc bench` as a command; one of them measures in earnest."""

import json

import pytest

from commands.app import run
from tests.results import make_bench, make_latency

QUICK = ["--threads", "1", "--min-runs", "1", "--min-seconds", "0"]


def test_json_is_all_that_is_on_stdout_and_equals_run_json(finetuned, tmp_path, capsys):
    output = tmp_path / "bench"
    arguments = ["--runtimes", "torch-fp32", "--sequence-lengths", "8", "--batch-sizes", "1,2", *QUICK]
    assert run(["bench", str(finetuned), *arguments, "--json", "--output", str(output)]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result == json.loads((output / "run.json").read_text())
    assert [row["latency"]["shape"]["batch_size"] for row in result["rows"]] == [1, 2]
    assert all(row["latency"]["p50_ms"] > 0 for row in result["rows"])
    assert result["parent"]["sha256"] == json.loads((finetuned / "run.json").read_text())["model"]["sha256"]


def test_tables_go_to_stdout_and_progress_to_stderr(monkeypatch, capsys):
    def bench(options, progress):
        progress.stage("Measuring")
        return make_bench()

    monkeypatch.setattr("recipes.bench.bench", bench)
    assert run(["bench", "runs/a"]) == 0
    shown = capsys.readouterr()
    assert "p50 ms" in shown.out and "Measuring" not in shown.out
    assert (
        shown.err
        == "Measuring\n\nNot kept. With --output DIR it is, as DIR/run.json, and enc runs lists it.\n"
    )


def test_what_was_kept_or_is_printed_as_json_is_not_called_lost(monkeypatch, capsys):
    monkeypatch.setattr("recipes.bench.bench", lambda *_: make_bench(output="runs/bench"))
    assert run(["bench", "runs/a"]) == 0
    monkeypatch.setattr("recipes.bench.bench", lambda *_: make_bench())
    assert run(["bench", "runs/a", "--json"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--batch-sizes", "1", "8"],
            "8: no such folder; a list of numbers has commas and no blanks: 1,8,32",
        ),
        (["--sequence-lengths", "8,512"], "--sequence-lengths 512: {model} holds 64 tokens at most"),
        (["--output", "{model}"], "--output {model}: a model is in that folder; choose another name"),
        (["{data}"], "{data}: not a model folder: config.json is missing"),
    ],
)
def test_wrong_input_is_one_line_before_anything_is_measured(
    finetuned, reviews, arguments, message, monkeypatch, capsys
):
    monkeypatch.setattr("recipes.bench.measure_latency", lambda *_, **__: [make_latency()])
    names = {"model": finetuned, "data": reviews}
    assert run(["bench", str(finetuned), *(word.format(**names) for word in arguments)]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.splitlines()[-1] == message.format(**names)
    assert all(line.startswith("Looking at") for line in shown.err.splitlines()[:-1])
