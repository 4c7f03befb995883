"""Claims about `enc drop-layers`."""

import pytest

from commands.app import run


@pytest.fixture
def words(finetuned, reviews, tmp_path, monkeypatch):
    monkeypatch.setattr("recipes.pruning.prove_reloaded", lambda *_: 0.0)
    words = ["drop-layers", str(finetuned), "--data", str(reviews), "--output", str(tmp_path / "out")]
    return [*words, "--no-latency", "--rows", "32"]


def test_result_is_shown(words, capsys):
    assert run([*words, "--layers", "2"]) == 0
    shown = capsys.readouterr().out
    assert "1 of 3 layers removed (33.3%)" in shown
    assert "× gone" in shown


def test_mistakes_are_told(words, capsys):
    assert run([*words, "--keep", "0,1", "--drop", "2"]) == 2
    assert "--keep and --drop both say which layers stay" in capsys.readouterr().err
    assert run([*words, "--drop", "x"]) == 2
    assert "--drop is 'x'; expected whole numbers from 0 up" in capsys.readouterr().err
