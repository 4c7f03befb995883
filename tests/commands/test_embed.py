"""Claims about what `enc embed` takes and prints."""

import json

import numpy as np
import pytest

from commands.app import run


@pytest.fixture
def texts(tmp_path):
    path = tmp_path / "texts.csv"
    path.write_text("id,text\n1,a good film\n2,\n3,a bad plot\n")
    return path


def test_vectors_are_made_and_described(tiny_model, texts, tmp_path, capsys):
    output = tmp_path / "vectors.npy"
    words = [str(tiny_model), "--input", str(texts), "--output", str(output), "--layers", "-2:"]
    assert run(["embed", *words, "--prefix", "the "]) == 0
    shown = capsys.readouterr()
    assert "3 of 32 numbers, float32" in shown.out
    assert "--layers -2: --pooling mean, length 1 each" in shown.out
    assert "rows/s" in shown.out
    assert shown.err.count("empty") == 1
    assert np.load(output).shape == (3, 32)


def test_json_is_the_result(tiny_model, texts, tmp_path, capsys):
    words = [str(tiny_model), "--input", str(texts), "--output", str(tmp_path / "v.npy"), "--json"]
    assert run(["embed", *words]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["command"], shown["rows"], shown["layers"], shown["pooling"]) == ("embed", 3, "-1", "mean")


def test_classifier_is_embedded_with_too(finetuned, texts, tmp_path):
    words = [str(finetuned), "--input", str(texts), "--output", str(tmp_path / "v.npy")]
    assert run(["embed", *words]) == 0
    assert np.load(tmp_path / "v.npy").shape == (3, 32)


def test_comparison_is_a_table_with_the_best_marked(tiny_model, tmp_path, capsys):
    rows = [("good film", "good film", 1.0), ("good film", "bad plot", 0.0), ("good a", "good the", 0.5)]
    path = tmp_path / "pairs.csv"
    path.write_text("text_a,text_b,label\n" + "".join(f"{a},{b},{label}\n" for a, b, label in rows))
    assert run(["embed", str(tiny_model), "--compare", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "Spearman's correlation on 3 test pairs" in shown
    assert shown.count(" *\n") + shown.count(" *  ") >= 1
    for row in ("0  embeddings", "3  last", "-2:  mean of the last 2", "1:  mean of all layers"):
        assert row in shown


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "--input and --output are missing"),
        (["--input", "a.txt"], "--output is missing: a file of vectors"),
        (
            ["--input", "a.txt", "--output", "b.csv"],
            "--output is 'b.csv'; expected a name in .npy or .parquet",
        ),
        (["--compare", "a.csv", "--runtime", "onnx-int8"], "all layers at once are computed in torch only"),
        (["--compare", "a.csv", "--pooling", "max"], "--compare and --pooling exclude each other"),
        (["--input", "a.txt", "--output", "b.npy", "--layers", "top"], "--layers is 'top'; expected a layer"),
        (["--input", "a.txt", "--output", "b.npy", "--label-column", "x"], "of use only with --compare"),
        (["--input", "a.txt", "--output", "b.npy", "--pooling", "men"], "did you mean 'mean'?"),
    ],
)
def test_options_that_make_no_sense_are_named(words, message, capsys):
    assert run(["embed", "nowhere", *words]) == 2
    assert message in capsys.readouterr().err


def test_interrupted_run_says_how_it_goes_on(tiny_model, texts, tmp_path, monkeypatch, capsys):
    def stop(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("recipes.embed.UnfinishedVectors.append", stop)
    words = [str(tiny_model), "--input", str(texts), "--output", str(tmp_path / "v.npy")]
    assert run(["embed", *words]) == 130
    assert "v.npy.unfinished keeps what was done. Add --resume to continue." in capsys.readouterr().err
