"""Claims about corpora: where texts come from, what is held out, and how they fill rows."""

import json

import numpy as np
import pytest

from encoder.corpus import check_corpus, cut_into_rows, pack_texts, read_corpus, survey
from encoder.errors import DataError
from encoder.model_folder import read_tokenizer


def corpus_of(*sources, fraction=0.2, **options):
    return read_corpus([str(s) for s in sources], **{"text_column": None, "encoding": None} | options,
                       fraction=fraction)  # fmt: skip


def texts_of(corpus, held_out):
    return [text for piece in corpus.texts(held_out=held_out) for text in piece]


def lines(path, count=50, start=0):
    path.write_text("\n".join(f"text number {i}" for i in range(start, start + count)) + "\n")
    return path


def test_lines_cells_and_files_are_texts(tmp_path):
    lines(tmp_path / "a.txt", 20)
    (tmp_path / "b.jsonl").write_text(
        "".join(json.dumps({"text": f"cell {i}", "x": 1}) + "\n" for i in range(9))
    )
    folder = tmp_path / "articles" / "deep"
    folder.mkdir(parents=True)
    for i in range(5):
        (folder / f"{i}.txt").write_text(f"Article {i}\n\nof two paragraphs")
    corpus = corpus_of(tmp_path / "a.txt", tmp_path / "b.jsonl", tmp_path / "articles")
    found = sorted(texts_of(corpus, False) + texts_of(corpus, True))
    expected = [f"text number {i}" for i in range(20)] + [f"cell {i}" for i in range(9)]
    assert found == sorted(expected + [f"Article {i}\n\nof two paragraphs" for i in range(5)])


def test_what_is_held_out_depends_on_the_text_alone(tmp_path):
    corpus = corpus_of(lines(tmp_path / "a.txt", 300))
    held, learnt = texts_of(corpus, True), texts_of(corpus, False)
    assert 30 < len(held) < 90
    assert not set(held) & set(learnt)
    other = corpus_of(lines(tmp_path / "b.txt", 200, start=100), tmp_path / "a.txt")
    assert set(held) <= set(texts_of(other, True))
    assert not set(learnt) & set(texts_of(other, True))


def test_splits_of_a_data_set_are_kept(reviews):
    corpus = corpus_of(reviews)
    found = survey(corpus)
    assert (found.train.texts, found.held_out.texts) == (80, 24)
    assert any("test rows are left alone" in note for note in corpus.notes)


def test_blank_texts_are_none_and_the_fingerprint_is_of_all_others(tmp_path):
    lines(tmp_path / "a.txt")
    before = survey(corpus_of(tmp_path / "a.txt"))
    (tmp_path / "b.txt").write_text("\n\n" + (tmp_path / "a.txt").read_text() + "  \n\n")
    assert survey(corpus_of(tmp_path / "b.txt")) == before
    (tmp_path / "b.txt").write_text((tmp_path / "a.txt").read_text() + "one more\n")
    assert survey(corpus_of(tmp_path / "b.txt")).fingerprint != before.fingerprint


@pytest.mark.parametrize("max_length", [8, 16, 64])
def test_rows_are_full_and_hold_every_token_once(tiny_model, tmp_path, max_length):
    tokenizer = read_tokenizer(tiny_model)
    corpus = corpus_of(lines(tmp_path / "a.txt", 40))
    packed = pack_texts(corpus.texts(held_out=False), tokenizer, max_length)
    first, last = tokenizer.token_id("cls_token"), tokenizer.token_id("sep_token")
    rows = packed.rows
    assert set(rows.lengths[:-1]) == {max_length}
    assert 2 < rows.lengths[-1] <= max_length
    inside = []
    for start, stop in zip(rows.offsets[:-1], rows.offsets[1:], strict=True):
        ids = rows.input_ids[start:stop]
        assert (ids[0], ids[-1]) == (first, last)
        inside.append(ids[1:-1])
    expected = []
    for text in texts_of(corpus, False):
        expected += [*tokenizer.encode_text([text])[0], last]
    assert np.concatenate(inside).tolist() == expected
    assert packed.tokens == len(expected) - len(texts_of(corpus, False))


def test_a_tokenizer_without_frames_gives_bare_rows():
    rows = cut_into_rows(np.arange(10, dtype=np.int32), 4, None, None)
    assert rows.lengths.tolist() == [4, 4, 2]
    assert rows.input_ids.tolist() == list(range(10))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda folder: (folder / "a.txt").write_text(" \n\n"), "no texts; all that is there is blank"),
        (lambda folder: (folder / "a.txt").write_text("one\n"), "of 1 text none is (held out|to learn from)"),
        (lambda folder: (folder / "a.txt").write_bytes(b"caf\xe9\nx\n"), r"a\.txt:1:4: not UTF-8"),
        (lambda folder: (folder / "a.txt").mkdir(), "no .txt file in this folder or below"),
    ],
)
def test_a_corpus_that_is_none_says_why(tmp_path, make, message):
    make(tmp_path)
    with pytest.raises(DataError, match=message):
        survey(corpus_of(tmp_path / "a.txt"))


def test_all_sources_that_are_not_there_are_told_at_once(tmp_path):
    with pytest.raises(DataError, match=r"nowhere\.txt: no such file[\s\S]*other/thing/x\.csv: no such file"):
        check_corpus(["nowhere.txt", str(lines(tmp_path / "a.txt")), "other/thing/x.csv"])


def test_a_table_without_a_text_column_is_refused(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    with pytest.raises(DataError, match=r"a\.csv"):
        corpus_of(tmp_path / "a.csv")
