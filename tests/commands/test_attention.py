"""Claims about what `enc attention` shows."""

import base64
import json
import re

import numpy as np
import pytest

from commands.app import run

TEXT = "the film was <b>good & lovely"


@pytest.fixture
def page(finetuned, tmp_path, capsys):
    path = tmp_path / "page.html"
    assert run(["attention", str(finetuned), TEXT, "--output", str(path)]) == 0
    return path.read_text(encoding="utf-8")


def data_of(page):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)[1])


def test_page_asks_nobody_for_anything(page):
    assert "default-src 'none'" in page
    assert not re.search(r"https?://|src=|href=|@import|url\(", page)


def test_page_holds_the_weights_and_the_text_harmlessly(page):
    data = data_of(page)
    tokens = len(data["tokens"])
    there = [head for head in data["heads"] if not head["gone"]]
    weights = np.frombuffer(base64.b64decode(data["weights"]), "<u2").reshape(len(there), tokens, tokens)
    assert weights.sum(-1) / 65535 == pytest.approx(np.ones((12, tokens)), abs=1e-3)
    assert "<b>good" not in page
    assert "&lt;b&gt;good &amp; lovely" in page


def test_page_says_what_a_weight_is_not(page):
    assert "not why the model decided" in page
    assert "silenced" in page


def test_one_head_is_shown_in_the_terminal_and_no_page_is_made(finetuned, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run(["attention", str(finetuned), "the film was good", "--layer", "1", "--head", "2"]) == 0
    shown = capsys.readouterr().out
    assert "layer 1, head 2" in shown
    for token in ("[CLS]", "film", "good", "[SEP]"):
        assert re.search(rf"^ *{re.escape(token)} ", shown, re.M)
    assert "without this head the logit of" in shown
    assert "not why the model decided" in shown
    assert not list(tmp_path.iterdir())


def test_without_a_head_the_largest_effects_are_listed_and_the_page_named(
    finetuned, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    assert run(["attention", str(finetuned), "the film was good"]) == 0
    shown = capsys.readouterr().out
    assert "the largest effects on the answer" in shown
    assert "attention.html" in shown
    assert (tmp_path / "attention.html").exists()


def test_json_is_the_result_without_the_weights(finetuned, tmp_path, capsys):
    path = tmp_path / "page.html"
    assert run(["attention", str(finetuned), "good", "--output", str(path), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["command"], len(shown["heads"]), shown["text"]) == ("attention", 12, "good")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "TEXT is missing"),
        (["x", "--layer", "1"], "--layer is given without --head"),
        (["x", "--output", "a.pdf"], "--output is 'a.pdf'; expected a name in .html"),
        (["x", "--rows", "5"], "--rows has no say without --data"),
    ],
)
def test_options_that_make_no_sense_are_named(words, message, capsys):
    assert run(["attention", "nowhere", *words]) == 2
    assert message in capsys.readouterr().err
