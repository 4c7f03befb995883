"""Claims about what a measurement runs on."""

import re
import shutil
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from encoder.errors import ConfigError, DataError
from encoder.rows import TokenizedRows
from recipes.inputs import check_lengths, make_workload, read_rows
from recipes.models import find_models
from recipes.observer import Recorder, Silent


@pytest.fixture
def model(finetuned):
    (model,) = find_models([finetuned.output])
    return model


def options(data, **changes):
    return SimpleNamespace(data=str(data), text_column=None, text_pair_column=None, encoding=None, **changes)


def test_test_split_goes_before_the_others(model, reviews):
    rows, texts = read_rows([model], options(reviews), Silent())
    assert (texts.split, texts.rows, len(rows)) == ("test", 24, 24)
    assert sum(texts.histogram.values()) == 24


def test_model_of_pairs_is_measured_on_pairs(model, tmp_path):
    (tmp_path / "pairs.csv").write_text("text_a,text_b\ngood film,bad plot\n" * 2)
    pairs = replace(model, task=model.task.model_copy(update={"pair": True}))
    rows, _ = read_rows([pairs], options(tmp_path / "pairs.csv"), Silent())
    assert rows.token_type_ids.max() == 1
    assert rows.lengths.tolist()[0] == 7  # [CLS] good film [SEP] bad plot [SEP]


def test_every_model_can_compute_the_rows(model):
    """Of the smallest vocabulary, and with the fewest token types."""
    small = replace(model, config=model.config.model_copy(update={"vocab_size": 7, "type_vocab_size": 0}))
    rows = TokenizedRows(np.arange(12, dtype=np.int32), np.ones(12, np.int8), np.array([0, 5, 12]))
    (case,) = make_workload([model, small], [2], [], rows).cases
    assert max(batch.input_ids.max() for batch in case.batches) < 7
    assert all((batch.token_type_ids == 0).all() for batch in case.batches)


def test_data_and_grid_can_be_measured_together(model, reviews):
    rows, _ = read_rows([model], options(reviews), Silent())
    shapes = [case.shape for case in make_workload([model], [1, 4], [8], rows).cases]
    assert [str(shape) for shape in shapes] == ["1x8", "4x8", "batch 1, data", "batch 4, data"]


def test_other_tokenizer_is_told(model, reviews, tmp_path):
    shutil.copytree(model.folder, tmp_path / "cased")
    file = tmp_path / "cased" / "tokenizer.json"
    file.write_text(re.sub('"lowercase": ?true', '"lowercase": false', file.read_text()))
    (cased,) = find_models([str(tmp_path / "cased")])
    recorder = Recorder(Silent())
    read_rows([model, model], options(reviews), recorder)
    assert recorder.notes == []
    read_rows([model, cased], options(reviews), recorder)
    assert "has another tokenizer" in recorder.notes[0]


def test_length_beyond_one_of_the_models_names_it(model):
    longer = replace(
        model, source="longer", config=model.config.model_copy(update={"max_position_embeddings": 128})
    )
    with pytest.raises(ConfigError) as caught:
        check_lengths([longer, model], [64, 100, 200])
    assert str(caught.value).splitlines() == [
        f"--sequence-lengths 100: {model.source} holds 64 tokens at most",
        "--sequence-lengths 200: longer holds 128 tokens at most",
        f"--sequence-lengths 200: {model.source} holds 64 tokens at most",
    ]


def test_data_without_a_text_is_refused(model, tmp_path):
    (tmp_path / "empty.csv").write_text('text\n" "\n')
    with pytest.raises(DataError, match="no texts to measure on"):
        read_rows([model], options(tmp_path / "empty.csv"), Silent())
