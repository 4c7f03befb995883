"""Claims about what `enc probe` shows."""

import json

from commands.app import run


def test_layers_are_a_table_with_controls_verdict_and_hints(finetuned, reviews, capsys):
    assert run(["probe", str(finetuned), "--data", str(reviews), "--seeds", "2"]) == 0
    shown = capsys.readouterr()
    for word in ("accuracy", "random weights", "shuffled labels", "selectivity", "embeddings"):
        assert word in shown.out
    assert "±" in shown.out
    assert "The most frequent class is 50.0% of the rows" in shown.out
    assert "hint" in shown.out.lower()
    assert "Not kept. With --output DIR" in shown.err


def test_json_is_the_result(finetuned, reviews, capsys):
    assert run(["probe", str(finetuned), "--data", str(reviews), "--seeds", "2", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["command"] == "probe"
    assert {"accuracy", "accuracy_spread", "selectivity"} <= set(shown["layers"][0])


def test_one_seed_has_no_spread(capsys):
    assert run(["probe", "nowhere", "--data", "x.csv", "--seeds", "1"]) == 2
    assert "--seeds is '1'; expected a whole number at least 2" in capsys.readouterr().err
