"""Claims about what `enc depth` shows."""

import json

import pytest

from commands.app import run

SHAPE = "num_hidden_layers = 2\nhidden_size = 16\nnum_attention_heads = 2\nmax_position_embeddings = 40\n"


@pytest.fixture
def shape(tmp_path):
    (tmp_path / "pre.toml").write_text(SHAPE + 'norm = "pre"\n')
    return str(tmp_path / "pre.toml")


def test_encoders_are_a_line_each_and_layers_a_table(shape, tiny_model, capsys):
    assert run(["depth", shape, str(tiny_model), "--rows", "4", "--max-length", "16"]) == 0
    shown = capsys.readouterr()
    for word in ("stream", "adds", "gradient", "rank", "embeddings", "pre-norm", "post", "Roy and Vetterli"):
        assert word in shown.out, word
    assert "Not kept. With --output DIR" in shown.err


def test_a_pipeline_is_counted_and_said_to_be_on_paper(capsys):
    assert run(["depth", "--pipeline", "stages=4,interleave=2,microbatches=8,blocks=4"]) == 0
    shown = capsys.readouterr().out
    assert "19 → 11 transfers" in shown and "-42%" in shown
    assert "A device waits 15.8% of the time" in shown and "without interleaving 27.3%" in shown
    assert "counted, not measured" in shown and "on paper" in shown


def test_a_report_draws_it_with_a_line_for_each_encoder(shape, tmp_path, capsys):
    (tmp_path / "post.toml").write_text(SHAPE)
    words = [shape, str(tmp_path / "post.toml"), "--rows", "4", "--max-length", "16"]
    assert run(["depth", *words, "--output", str(tmp_path / "runs" / "depth")]) == 0
    assert run(["report", str(tmp_path / "runs")]) == 0
    page = (tmp_path / "runs" / "report.html").read_text()
    for title in ("The residual stream", "Gradient by layer", "Effective rank", "What a layer adds"):
        assert f"<h3>{title}" in page, title
    for name in ("pre.toml: pre-norm", "post.toml: post-norm"):
        assert name in page, name
    capsys.readouterr()
    assert run(["report", str(tmp_path / "runs"), "--json"]) == 0
    (part,) = json.loads(capsys.readouterr().out)["depths"]
    assert [len(line["points"]) for line in part["lines"]] == [3, 3]


def test_json_is_the_result(shape, capsys):
    assert run(["depth", shape, "--rows", "4", "--max-length", "16", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["command"] == "depth"
    assert {"stream", "attention_share", "gradient", "effective_rank"} <= set(shown["models"][0]["points"][1])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "MODEL|CONFIG is missing: an encoder, a TOML file or a name; or give --pipeline"),
        (
            ["tiny", "--data", "x.csv", "--corpus", "x.txt"],
            "--data has labels to learn and --corpus has none",
        ),
        (["--pipeline", "stages=1,microbatches=2"], "--pipeline stages=1,microbatches=2: stages is '1'"),
        (
            ["--pipeline", "stages=2,microbatches=2", "--data", "x.csv"],
            "--data has no say without an encoder",
        ),
        (["tiny", "--label-column", "x"], "--label-column is 'x', but there is no --data"),
    ],
)
def test_what_is_wrong_ends_with_exit_code_2(words, message, capsys):
    assert run(["depth", *words]) == 2
    assert message in capsys.readouterr().err
