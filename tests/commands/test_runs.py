"""Claims about `enc runs` as a command."""

import json

import pytest

from commands.app import run


@pytest.fixture
def folder(finetuned):
    """The folder that holds the run and beside it a file that is none."""
    (finetuned.parent / "foreign").mkdir(exist_ok=True)
    (finetuned.parent / "foreign" / "run.json").write_text("{}")
    return finetuned.parent


def test_json_is_all_that_is_on_stdout_and_what_was_left_out_is_on_stderr(folder, finetuned, capsys):
    assert run(["runs", str(folder), "--json"]) == 0
    shown = capsys.readouterr()
    ledger = json.loads(shown.out)
    outside, run_ = ledger["runs"]
    assert outside["folder"] is None
    assert run_["folder"] == str(finetuned) and run_["parent"] == outside["name"]
    assert run_["score"]["metric"] == "accuracy"
    assert "foreign/run.json: not a run of enc; left out" in shown.err


def test_table_and_tree_are_on_stdout(folder, capsys):
    assert run(["runs", str(folder)]) == 0
    shown = capsys.readouterr().out
    assert "└─ reviews" in shown and "elsewhere" in shown


def test_default_folder_that_is_not_there_is_told(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run(["runs"]) == 2
    assert "runs: no such folder" in capsys.readouterr().err
