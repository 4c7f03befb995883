"""Claims about `enc recipes`."""

import pytest

from commands.app import run
from recipes.recipe_files import find_recipe, preset_names


def test_all_presets_are_listed_with_their_steps(capsys):
    assert run(["recipes", "list"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in preset_names())
    assert "finetune → distill" in shown


def test_a_preset_is_shown_as_it_is(capsys):
    assert run(["recipes", "show", "quickstart"]) == 0
    assert capsys.readouterr().out == find_recipe("quickstart").text


def test_a_preset_is_copied_and_nothing_is_replaced_unasked(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(["recipes", "copy", "quickstart"]) == 0
    assert capsys.readouterr().out == "quickstart.toml\n"
    assert run(["recipes", "copy", "quickstart", "quickstart.toml"]) == 2
    assert "the file exists; choose another name, or --overwrite" in capsys.readouterr().err
    assert run(["recipes", "copy", "distil-12-to-6", "quickstart.toml", "--overwrite"]) == 0
    assert (tmp_path / "quickstart.toml").read_text() == find_recipe("distil-12-to-6").text


@pytest.mark.parametrize("action", ["show", "copy"])
def test_a_name_that_is_none_is_answered_with_those_there_are(action, capsys):
    assert run(["recipes", action, "quikstart"]) == 2
    assert "quikstart: no such recipe; did you mean 'quickstart'?" in capsys.readouterr().err
