import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from encoder import checkpoint
from encoder.checkpoint import draw_new_classifier_, load_classifier, save_classifier
from encoder.config import LayerShape
from encoder.errors import CheckpointError
from encoder.model_folder import read_tokenizer
from encoder.prediction import predict_logits
from encoder.task import Task

TASK = Task(kind="single_label", labels=("neg", "neutral", "pos"))


@pytest.fixture
def tokenizer(tiny_model: Path):
    return read_tokenizer(tiny_model)


@pytest.mark.parametrize("variant", ["plain", "pruned", "pre"])
def test_a_saved_model_reloads_in_a_fresh_process_with_equal_logits(
    make_config, make_classifier, make_rows, tokenizer, tmp_path: Path, variant: str
) -> None:
    uneven = (
        LayerShape(heads=(0, 2), head_size=4, intermediate_size=5),
        LayerShape(heads=(), head_size=4, intermediate_size=0),
    )
    changes = {"plain": {}, "pruned": {"layers": uneven}, "pre": {"norm": "pre"}}[variant]
    model = make_classifier(make_config(**changes), TASK)
    save_classifier(model, tokenizer, tmp_path)
    rows = make_rows([5, 1, 9])
    np.savez(tmp_path / "rows.npz", ids=rows.input_ids, types=rows.token_type_ids, offsets=rows.offsets)
    code = (
        "import sys, numpy as np\nfrom pathlib import Path\n"
        "from encoder.checkpoint import load_classifier\nfrom encoder.prediction import predict_logits\n"
        "from encoder.rows import TokenizedRows\n"
        "folder = Path(sys.argv[1]); a = np.load(folder / 'rows.npz')\n"
        "rows = TokenizedRows(a['ids'], a['types'], a['offsets'])\n"
        "model = load_classifier(folder); assert model.task.labels == ('neg', 'neutral', 'pos')\n"
        "np.save(folder / 'logits.npy', predict_logits(model, rows))\n"
    )
    root = Path(checkpoint.__file__).parents[1]
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, cwd=root)
    assert np.array_equal(np.load(tmp_path / "logits.npy"), predict_logits(model, rows))


def test_a_new_task_gets_a_new_head_and_keeps_the_encoder(make_classifier, tokenizer, tmp_path: Path) -> None:
    model = make_classifier(task=TASK)
    save_classifier(model, tokenizer, tmp_path)
    same = load_classifier(tmp_path, task=TASK)
    assert same.new_parameters == ()
    other = load_classifier(tmp_path, task=Task(kind="regression"), seed=1)
    assert other.new_parameters == ("classifier.output.weight", "classifier.output.bias")
    for name, parameter in other.encoder.named_parameters():
        assert torch.equal(parameter, model.encoder.get_parameter(name))


@pytest.mark.parametrize("task", [Task(kind="regression"), TASK])
def test_a_classifier_drawn_again_is_that_of_a_model_loaded_with_the_seed(
    make_classifier, tokenizer, tmp_path: Path, task: Task
) -> None:
    save_classifier(make_classifier(task=TASK), tokenizer, tmp_path)
    model = load_classifier(tmp_path, task=task, seed=0)
    draw_new_classifier_(model, 7)
    expected = load_classifier(tmp_path, task=task, seed=7)
    for (name, one), two in zip(model.named_parameters(), expected.parameters(), strict=True):
        assert torch.equal(one, two), name


@pytest.mark.parametrize("kind", ["single_label", "multi_label"])
def test_the_same_labels_in_another_order_keep_their_logits(
    make_classifier, make_rows, tokenizer, tmp_path: Path, kind
) -> None:
    model = make_classifier(task=Task(kind=kind, labels=TASK.labels))
    save_classifier(model, tokenizer, tmp_path)
    turned = load_classifier(tmp_path, task=Task(kind=kind, labels=("pos", "neg", "neutral")))
    assert turned.new_parameters == ()
    assert turned.task.labels == ("pos", "neg", "neutral")
    rows = make_rows([5, 9])
    assert np.array_equal(predict_logits(turned, rows), predict_logits(model, rows)[:, [2, 0, 1]])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("form", ["safetensors", "pickle", "own shape"])
def test_weights_of_any_float_type_become_float32_however_stored(
    make_config, make_classifier, tokenizer, tmp_path: Path, dtype: torch.dtype, form: str
) -> None:
    model = make_classifier(make_config(norm="pre" if form == "own shape" else "post"), TASK)
    save_classifier(model, tokenizer, tmp_path)
    path = tmp_path / "model.safetensors"
    weights = {name: tensor.to(dtype) for name, tensor in load_file(path).items()}
    save_file(weights, path)
    if form == "pickle":
        path.unlink()
        torch.save(weights, tmp_path / "pytorch_model.bin")
    loaded = load_classifier(tmp_path)
    assert {p.dtype for p in loaded.parameters()} == {torch.float32}
    for name, parameter in model.named_parameters():
        assert torch.equal(loaded.get_parameter(name), parameter.to(dtype).float()), name


def test_what_does_not_fit_is_named(make_classifier, tokenizer, tmp_path: Path) -> None:
    save_classifier(make_classifier(task=TASK), tokenizer, tmp_path)
    path = tmp_path / "model.safetensors"
    weights = load_file(path)
    del weights["bert.encoder.layer.0.attention.self.key.weight"]
    weights["bert.embeddings.LayerNorm.weight"] = torch.zeros(3)
    save_file(weights, path)
    with pytest.raises(CheckpointError) as error:
        load_classifier(tmp_path)
    assert "layers.0.attention.qkv.weight are missing" in str(error.value)
    assert "embeddings.norm.weight has shape [3], config.json says [16]" in str(error.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.to(torch.int8), "stored as int8; expected float"),
        (lambda t: t.to(torch.float8_e4m3fn), "stored as float8_e4m3fn; expected float"),
        (lambda t: t.to(torch.float8_e5m2), "stored as float8_e5m2; expected float"),
        (lambda t: t * torch.nan, "not finite"),
    ],
)
def test_weights_that_are_no_numbers_are_refused(
    make_classifier, tokenizer, tmp_path: Path, change, message: str
) -> None:
    save_classifier(make_classifier(task=TASK), tokenizer, tmp_path)
    path = tmp_path / "model.safetensors"
    weights = load_file(path)
    weights["bert.pooler.dense.weight"] = change(weights["bert.pooler.dense.weight"])
    save_file(weights, path)
    with pytest.raises(CheckpointError, match=message):
        load_classifier(tmp_path)


def test_layers_beyond_those_of_the_config_are_not_dropped_in_silence(
    make_classifier, tokenizer, tmp_path: Path
) -> None:
    save_classifier(make_classifier(task=TASK), tokenizer, tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"num_hidden_layers": 2}))
    with pytest.raises(CheckpointError, match=r"encoder\.layer\.2.*num_hidden_layers \(2\)"):
        load_classifier(tmp_path)


def test_shards_are_read_from_the_model_folder_only(make_classifier, tokenizer, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    save_classifier(make_classifier(task=TASK), tokenizer, folder)
    (folder / "model.safetensors").rename(tmp_path / "outside.safetensors")
    index = folder / "model.safetensors.index.json"
    for weight_map in ({"x": "../outside.safetensors"}, ["outside.safetensors"]):
        index.write_text(json.dumps({"weight_map": weight_map}))
        with pytest.raises(CheckpointError, match="weights cannot be read"):
            load_classifier(folder)


@pytest.mark.parametrize("content", [b"not a tensor file", b""])
def test_a_broken_weights_file_is_an_error_not_a_crash(
    make_classifier, tokenizer, tmp_path: Path, content: bytes
) -> None:
    save_classifier(make_classifier(task=TASK), tokenizer, tmp_path)
    (tmp_path / "model.safetensors").write_bytes(content)
    with pytest.raises(CheckpointError, match="weights cannot be read"):
        load_classifier(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(CheckpointError, match="no weights found"):
        load_classifier(tmp_path)


def test_a_pickle_that_holds_code_is_not_run(make_classifier, tokenizer, tmp_path: Path) -> None:
    save_classifier(make_classifier(task=TASK), tokenizer, tmp_path)
    (tmp_path / "model.safetensors").unlink()
    torch.save({"x": Path("/")}, tmp_path / "pytorch_model.bin")
    with pytest.raises(CheckpointError, match="more than tensors"):
        load_classifier(tmp_path)


def test_an_encoder_alone_is_no_classifier(tiny_model: Path) -> None:
    with pytest.raises(CheckpointError, match="fine-tune it first"):
        load_classifier(tiny_model)
