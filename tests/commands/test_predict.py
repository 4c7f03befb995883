"""Claims about what `enc predict` prints."""

import csv
import io
import json

import pytest

from commands.app import run

TEXTS = ["the film was good great lovely", 'a "dull", poor, awful story', "", "лучший 영화 ✨"]


@pytest.fixture
def stdin(monkeypatch):
    def put(content: bytes) -> None:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))

    return put


def predict(capsys, *arguments):
    assert run(["predict", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def test_arguments_file_and_stdin_give_the_same_lines(finetuned, tmp_path, stdin, capsys):
    from_arguments = predict(capsys, finetuned, *TEXTS)
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS) + "\n")
    from_file = predict(capsys, finetuned, "--input", tmp_path / "texts.txt")
    stdin("\ufeff{}\r\n".format("\r\n".join(TEXTS)).encode())
    from_stdin = predict(capsys, finetuned)
    assert from_arguments == from_file == from_stdin
    rows = [json.loads(line) for line in from_arguments.splitlines()]
    assert [row["text"] for row in rows] == TEXTS
    assert [row["label"] for row in rows[:2]] == ["pos", "neg"]
    for row in rows:
        assert set(row) == {"text", "label", "probability", "probabilities"}
        assert sum(row["probabilities"].values()) == pytest.approx(1, abs=1e-5)


def test_csv_is_read_back_with_the_texts_as_they_were(finetuned, tmp_path, capsys):
    with (tmp_path / "in.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["id", "text"], *enumerate([*TEXTS[:2], "two\nlines good"])])
    out = predict(capsys, finetuned, "--input", tmp_path / "in.csv", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(out, newline="")))
    assert [row["text"] for row in rows] == [*TEXTS[:2], "two\nlines good"]
    assert list(rows[0]) == ["text", "label", "probability_neg", "probability_pos"]
    assert rows[0]["label"] == "pos"


def test_table_that_is_piped_has_whole_texts_and_no_colour(finetuned, capsys):
    text = "good " * 100 + "end"
    out = predict(capsys, finetuned, text, "--format", "table")
    assert "\x1b" not in out
    assert "…" not in out
    assert out.count("good") == 100


def test_texts_that_are_cut_are_counted_on_stderr(finetuned, capsys):
    assert run(["predict", str(finetuned), "good " * 100, "bad"]) == 0
    assert "Cut at 64 tokens: 1 of 2 given rows (50.0%)" in capsys.readouterr().err


def test_pairs_come_in_twos_or_with_a_tab(finetuned, stdin, capsys):
    by_place = predict(capsys, finetuned, "--pair", "good", "film", "bad", "plot")
    stdin(b"good\tfilm\nbad\tplot\n")
    assert predict(capsys, finetuned, "--pair") == by_place
    first = json.loads(by_place.splitlines()[0])
    assert (first["text"], first["text_pair"]) == ("good", "film")
    assert run(["predict", str(finetuned), "--pair", "good"]) == 2
    assert "1 text; the model takes pairs" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"good\nb\xe4d\n", "stdin:2:2: not UTF-8"), (b"good\n", "stdin:1: no tab")],
)
def test_broken_line_is_named(finetuned, stdin, content, message, capsys):
    stdin(content)
    assert run(["predict", str(finetuned), *(["--pair"] if "tab" in message else [])]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    "command", [["predict", "minilm-l6", "good"], ["evaluate", "minilm-l6", "--data", "x"]]
)
def test_encoder_without_a_classifier_is_called_as_it_was_given(command, tiny_model, monkeypatch, capsys):
    monkeypatch.setattr("encoder.sources.builtin_model_folder", lambda name: tiny_model)
    assert run(command) == 2
    shown = capsys.readouterr().err
    assert (
        "minilm-l6: an encoder without a classifier; fine-tune it first: enc finetune --model minilm-l6"
        in shown
    )
    assert str(tiny_model) not in shown


def test_encoder_without_a_classifier_is_refused(tiny_model, capsys):
    assert run(["predict", str(tiny_model), "good"]) == 2
    assert "without a classifier; fine-tune it first" in capsys.readouterr().err


def test_candidates_come_with_their_score_the_best_first(finetuned, tmp_path, capsys):
    (tmp_path / "candidates.csv").write_text("text\na good film\nbad awful plot\nlovely great\n")
    words = [finetuned, "--pair", "--query", "the film", "--candidates", tmp_path / "candidates.csv"]
    rows = [json.loads(line) for line in predict(capsys, *words).splitlines()]
    assert {row["text"] for row in rows} == {"the film"}
    assert [row["score"] for row in rows] == sorted((row["score"] for row in rows), reverse=True)
    assert all(row["score"] == row["probabilities"]["pos"] for row in rows)
    out = predict(capsys, *words, "--format", "csv", "--top", "1")
    (first,) = csv.DictReader(io.StringIO(out))
    assert first["text_pair"] == rows[0]["text_pair"]
    assert float(first["score"]) == rows[0]["score"]
    assert "score" in predict(capsys, *words, "--format", "table")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--query", "q"], "--query is given without --candidates"),
        (["--top", "3"], "--top has no say without --query and --candidates"),
        (
            ["--query", "q", "--candidates", "c.txt", "--input", "i.txt"],
            "--query and --input exclude each other",
        ),
    ],
)
def test_half_a_ranking_is_refused(words, message, capsys):
    assert run(["predict", "nowhere", *words]) == 2
    assert message in capsys.readouterr().err
