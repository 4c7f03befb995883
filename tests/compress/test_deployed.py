"""Claims about the folder that a model is exported to, whatever its family and its tokenizer."""

import json
import runpy
import subprocess
from pathlib import Path

import numpy as np
import pytest

from compress.deployed import ACTIVATIONS, Export, find_graph, read_export, runtimes_of, write_deployed
from compress.onnx_graph import build_graph, graph_inputs
from encoder import huggingface
from encoder.config import EncoderConfig, LayerShape
from encoder.errors import CheckpointError
from encoder.metrics import activate
from encoder.model import Classifier, initialise_
from encoder.model_folder import is_exported, read_config, read_task, read_tokenizer
from encoder.prediction import predict_logits
from encoder.task import Task
from encoder.tokenizer import Tokenizer, load_tokenizer
from tests.encoder.tokenizer_folders import FOLDERS

TEXTS = (
    "Transformers encode text.",
    "Ünïcödé résumés, 한국어 문장 " * 9,
    "",
    "12,345.67 zebra",
    "the dog",
    "a",
)
MAX_LENGTH = 20
SHAPES = (
    LayerShape(heads=(0, 2), head_size=4, intermediate_size=8),
    LayerShape(heads=(), head_size=4, intermediate_size=3),
)


def make_model(tokenizer: Tokenizer, family: str, task: Task) -> Classifier:
    pad = 1 if family in huggingface.ROBERTA_LIKE else 0
    config = EncoderConfig(
        family=family,
        vocab_size=tokenizer.vocab_size,
        hidden_size=16,
        embedding_size=8 if family == "electra" else 16,
        max_position_embeddings=40,
        position_offset=pad + 1 if pad else 0,
        type_vocab_size={"distilbert": 0, "bert": 2, "electra": 2}.get(family, 1),
        pad_token_id=pad,
        layers=SHAPES,
    )
    model = Classifier(config, task)
    initialise_(model, config.model_copy(update={"initializer_range": 0.4}), 0)
    return model.eval()


def write(folder: Path, model: Classifier, tokenizer: Tokenizer) -> Export:
    export = Export(
        form="portable",
        precision="fp32",
        opset=17,
        inputs=graph_inputs(model.config),
        activation=ACTIVATIONS[model.task.kind],
        max_length=MAX_LENGTH,
        truncation_side=tokenizer.truncation_side,
        segments=tokenizer.uses_token_types,
    )
    folder.mkdir()
    write_deployed(folder, build_graph(model), model, tokenizer, export)
    return export


@pytest.mark.parametrize("pair", [False, True], ids=["single", "pair"])
@pytest.mark.parametrize("name", [name for name in FOLDERS if "minilm" not in name])
def test_the_example_gives_torchs_answers_with_every_tokenizer(name, pair, tmp_path, monkeypatch, capsys):
    """E7, E8, E13: texts cut on either side, pairs with and without segments, special tokens."""
    source = FOLDERS[name](tmp_path / "source")
    family = json.loads((source / "config.json").read_text())["model_type"]
    pad = 1 if family in huggingface.ROBERTA_LIKE else 0
    tokenizer = load_tokenizer(source, max_tokens=38, pad_token_id=pad)
    model = make_model(tokenizer, family, Task(kind="single_label", labels=("a", "b", "c"), pair=pair))
    write(tmp_path / "out", model, tokenizer)
    texts, pairs = (TEXTS[::2], TEXTS[1::2]) if pair else (TEXTS, None)
    rows, stats = tokenizer.encode(texts, pairs, max_length=MAX_LENGTH)
    assert stats.rows_cut > 0
    expected = activate(model.task, predict_logits(model, rows))

    monkeypatch.setattr("sys.argv", ["example.py", *TEXTS])
    runpy.run_path(str(tmp_path / "out" / "example.py"), run_name="__main__")
    found = [list(json.loads(line).values()) for line in capsys.readouterr().out.splitlines()]
    assert np.array(found) == pytest.approx(expected, abs=1e-5)
    again, _ = read_tokenizer(tmp_path / "out").encode(texts, pairs, max_length=MAX_LENGTH)
    assert again.input_ids.tolist() == rows.input_ids.tolist()
    assert again.token_type_ids.tolist() == rows.token_type_ids.tolist()


@pytest.fixture
def folder(tmp_path) -> Path:
    """An exported folder."""
    tokenizer = load_tokenizer(
        FOLDERS["vocab.txt without config"](tmp_path / "source"), max_tokens=38, pad_token_id=0
    )
    model = make_model(tokenizer, "bert", Task(kind="multi_label", labels=("x", "y")))
    write(tmp_path / "out", model, tokenizer)
    return tmp_path / "out"


def test_it_says_of_itself_what_it_is(folder):
    assert is_exported(folder)
    assert read_export(folder).activation == "sigmoid"
    assert read_task(folder) == Task(kind="multi_label", labels=("x", "y"))
    assert read_config(folder).layers == SHAPES
    assert runtimes_of(folder, ("torch-fp32", "onnx-int8")) == ("onnx-fp32",)
    assert runtimes_of(folder.parent, ("torch-fp32",)) == ("torch-fp32",)


def test_the_sums_are_those_of_sha256sum(folder):
    done = subprocess.run(["sha256sum", "-c", "SHA256SUMS"], cwd=folder, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout
    assert find_graph(folder) == folder / "model.onnx"


def test_a_file_that_joined_later_is_named(folder):
    (folder / "model.onnx.data").touch()
    with pytest.raises(CheckpointError, match=r"model\.onnx\.data: not in SHA256SUMS"):
        find_graph(folder)


def test_all_that_is_wrong_is_named_at_once(folder):
    (folder / "tokenizer.json").unlink()
    (folder / "config.json").write_text((folder / "config.json").read_text().replace("sigmoid", "softmax"))
    with pytest.raises(CheckpointError) as caught:
        find_graph(folder)
    first, second, advice = str(caught.value).splitlines()
    assert first.endswith("config.json: changed since it was exported")
    assert second.endswith("tokenizer.json: missing")
    assert advice.endswith("is not what enc export proved; export the model again")


def test_a_config_that_says_nonsense_of_the_graph_is_refused(folder):
    config = json.loads((folder / "config.json").read_text())
    config["enc"]["export"]["precision"] = "int3"
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(CheckpointError, match=r"config\.json: enc\.export\.precision: Input should be"):
        read_export(folder)
    config["enc"]["export"] = None
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(CheckpointError, match=r"config\.json: enc\.export"):
        read_export(folder)
