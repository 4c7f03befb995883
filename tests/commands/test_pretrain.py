"""Claims about what `enc pretrain` shows."""

import json

import pytest

from commands.app import run

SHAPE = "num_hidden_layers = 1\nhidden_size = 16\nnum_attention_heads = 2\nmax_position_embeddings = 32\n"


@pytest.fixture
def command(reviews, tmp_path):
    (tmp_path / "own.toml").write_text(SHAPE)
    words = {
        "--corpus": reviews, "--config": tmp_path / "own.toml", "--output": tmp_path / "out",
        "--vocab-size": 60, "--num-epochs": 2, "--batch-size": 16, "--max-length": 16,
    }  # fmt: skip
    return ["pretrain", *(str(word) for pair in words.items() for word in pair)]


def test_epochs_are_a_table_and_the_next_step_is_told(command, tmp_path, capsys):
    assert run(command) == 0
    shown = capsys.readouterr()
    for word in ("perplexity", "guessed right", "before", "epoch 2", "tokens/s", "wordpiece", "post-norm"):
        assert word in shown.out, word
    assert f"enc finetune --model {tmp_path / 'out'}" in shown.out
    assert "texts" in shown.err and "validation loss" in shown.err


def test_json_is_the_result(command, tmp_path, capsys):
    assert run([*command, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown == json.loads((tmp_path / "out" / "run.json").read_text())
    assert shown["command"] == "pretrain"
    assert {"loss", "perplexity", "accuracy"} == set(shown["held_out"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "--corpus is missing"),
        (["--corpus", "x.txt", "--output", "o"], "--config or --model is missing: an encoder to make"),
        (["--corpus", "x.txt", "--output", "o", "--config", "mini", "--model", "m"],
         "--config makes an encoder and --model trains one further; give one of them"),
        (["--corpus", "x.txt", "--output", "o", "--model", "m", "--vocab-size", "99"],
         "--vocab-size has no say with --model, which has its tokenizer"),
        (["--corpus", "x.txt", "--output", "o", "--config", "mini", "--text-column", "a"],
         "--text-column is 'a', but x.txt is no table"),
        (["--corpus", "nowhere.txt", "--output", "o", "--config", "mini"], "nowhere.txt: no such file"),
    ],
)  # fmt: skip
def test_what_is_wrong_ends_with_exit_code_2(words, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(["pretrain", *words]) == 2
    assert message in capsys.readouterr().err
