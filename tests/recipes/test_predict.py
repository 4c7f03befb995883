"""Claims about labelling texts."""

from itertools import chain
from pathlib import Path

import pytest
import torch

import recipes.predict
from encoder.checkpoint import load_classifier, save_classifier
from encoder.errors import ConfigError, DataError
from encoder.metrics import activate
from encoder.model_folder import read_tokenizer
from encoder.prediction import predict_logits
from encoder.task import Task
from recipes.predict import predict
from recipes.predict_config import PredictConfig


def rows_of(config, **sources):
    return list(chain.from_iterable(predict(config, **sources).rows))


def test_predictions_are_the_models_own_in_the_order_of_the_texts(finetuned):
    texts = ("long good film " * 3, "bad", "a slow plot", "great cast")
    folder = Path(finetuned.output)
    rows, _ = read_tokenizer(folder).encode(texts, max_length=12)
    model = load_classifier(folder)
    expected = activate(model.task, predict_logits(model, rows))
    found = rows_of(PredictConfig(model=finetuned.output, texts=texts))
    assert [one.text for one in found] == list(texts)
    for one, probabilities in zip(found, expected, strict=True):
        assert one.probabilities == pytest.approx(tuple(probabilities))
        assert one.labels == (model.task.labels[int(probabilities.argmax())],)


def test_chunks_change_nothing(finetuned, monkeypatch):
    lines = [f"the {word} film {'very ' * (i % 5)}\n".encode() for i, word in enumerate(["good", "bad"] * 25)]
    config = PredictConfig(model=finetuned.output)
    whole = rows_of(config, lines=lines)
    monkeypatch.setattr(recipes.predict, "CHUNK_ROWS", 7)
    in_chunks = rows_of(config, lines=lines)
    assert [one.text for one in whole] == [one.text for one in in_chunks]
    for one, other in zip(whole, in_chunks, strict=True):
        assert one.probabilities == pytest.approx(other.probabilities, abs=1e-6)


def test_lines_are_read_no_further_than_asked_for(finetuned, monkeypatch):
    monkeypatch.setattr(recipes.predict, "CHUNK_ROWS", 4)
    read = 0

    def endless():
        nonlocal read
        while True:
            read += 1
            yield b"a good film\n"

    made = predict(PredictConfig(model=finetuned.output), lines=endless())
    assert len(next(made.rows)) == 4
    assert read == 4


def test_table_gives_its_text_column(finetuned, tmp_path):
    (tmp_path / "in.csv").write_text('id,text\n1,"good, NA"\n2,null\n3,\n')
    found = rows_of(PredictConfig(model=finetuned.output, input=tmp_path / "in.csv"))
    assert [one.text for one in found] == ["good, NA", "null", ""]


@pytest.mark.parametrize(
    ("content", "message"),
    [("a,b\n1,2\n", "--text-column"), ('text\n"open\n', r"in\.csv"), ("", "empty")],
)
def test_table_that_is_wrong_says_so_before_anything_is_predicted(finetuned, tmp_path, content, message):
    (tmp_path / "in.csv").write_text(content)
    with pytest.raises(DataError, match=message):
        predict(PredictConfig(model=finetuned.output, input=tmp_path / "in.csv"))


def test_file_that_is_not_there_says_so(finetuned):
    with pytest.raises(DataError, match=r"--input nowhere.txt: cannot be read: No such file"):
        predict(PredictConfig(model=finetuned.output, input=Path("nowhere.txt")))


@pytest.mark.parametrize(("threshold", "labels"), [(None, 2), (0.0, 3), (0.999, 0)])
def test_labels_above_the_threshold_are_given(tiny_model, tmp_path, threshold, labels):
    model = load_classifier(tiny_model, task=Task(kind="multi_label", labels=("a", "b", "c")))
    torch.nn.init.zeros_(model.classifier.output.weight)
    with torch.no_grad():
        model.classifier.output.bias.copy_(torch.tensor([1.0, -1.0, 2.0]))
    save_classifier(model, read_tokenizer(tiny_model), tmp_path / "model")
    (one,) = rows_of(PredictConfig(model=str(tmp_path / "model"), texts=("good",), threshold=threshold))
    assert one.labels == ("c", "a", "b")[:labels]


def test_threshold_of_a_model_that_has_none_is_refused(finetuned):
    message = f"--threshold 0.7: {finetuned.output} is a single-label model; only of several labels"
    with pytest.raises(ConfigError, match=message):
        predict(PredictConfig(model=finetuned.output, texts=("good",), threshold=0.7))


def test_odd_number_of_texts_for_pairs_is_refused(finetuned):
    with pytest.raises(ConfigError, match="3 texts; the model takes pairs"):
        predict(PredictConfig(model=finetuned.output, texts=("a", "b", "c"), pair=True))
