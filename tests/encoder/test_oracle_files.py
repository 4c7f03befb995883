"""Each family with random weights: folders are read and written as Transformers does."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
from transformers import AutoModel, AutoModelForSequenceClassification

from encoder.batches import Batch
from encoder.checkpoint import load_classifier, save_classifier
from encoder.errors import CheckpointError
from encoder.model_folder import read_config, read_tokenizer
from encoder.prediction import predict_logits
from encoder.task import Task
from tests.encoder.oracle import (
    FAMILIES,
    LABELS,
    ROBERTA,
    SIZES,
    add_tokenizer,
    assert_close,
    inputs_of,
    logits_of,
    make_rows,
    padded,
    randomised,
    theirs,
)


@pytest.fixture(params=FAMILIES)
def model(request: pytest.FixtureRequest) -> Any:
    family, options = FAMILIES[request.param]
    return theirs(family, options)


def test_saved_model_opens_in_transformers_with_equal_logits_and_labels(model: Any, tmp_path: Path) -> None:
    source, saved = tmp_path / "source", tmp_path / "saved"
    model.save_pretrained(source)
    add_tokenizer(source)
    ours = load_classifier(source)
    with torch.no_grad():
        for parameter in ours.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape))
    save_classifier(ours, read_tokenizer(source), saved)

    reopened, report = AutoModelForSequenceClassification.from_pretrained(saved, output_loading_info=True)
    assert not any(report.values()), report
    assert type(reopened) is type(model)
    rows = make_rows(model, pair=True)
    assert_close(logits_of(reopened.eval(), rows), predict_logits(ours, rows))
    assert reopened.config.id2label == dict(enumerate(LABELS))
    assert reopened.config.label2id == {label: i for i, label in enumerate(LABELS)}
    again = load_classifier(saved)
    assert again.config == ours.config
    assert again.task == ours.task
    assert np.array_equal(predict_logits(again, rows), predict_logits(ours, rows))


@pytest.mark.parametrize(
    "task", [Task(kind="multi_label", labels=LABELS), Task(kind="regression", pair=True)]
)
def test_saved_task_opens_in_transformers_as_the_same_problem(task: Task, tmp_path: Path) -> None:
    source, saved = tmp_path / "source", tmp_path / "saved"
    model = theirs("bert", SIZES)
    model.save_pretrained(source)
    add_tokenizer(source)
    ours = load_classifier(source, task=task)
    assert ours.new_parameters == ("classifier.output.weight", "classifier.output.bias")
    save_classifier(ours, read_tokenizer(source), saved)
    reopened = AutoModelForSequenceClassification.from_pretrained(saved)
    problems = {"multi_label": "multi_label_classification", "regression": "regression"}
    assert reopened.config.problem_type == problems[task.kind]
    assert reopened.config.num_labels == task.num_outputs
    rows = make_rows(model, pair=True)
    assert_close(logits_of(reopened.eval(), rows), predict_logits(ours, rows))
    assert load_classifier(saved).task == task


def test_encoder_saved_without_a_classifier_loads_with_equal_states(model: Any, tmp_path: Path) -> None:
    encoder = randomised(AutoModel.from_config(model.config))
    encoder.save_pretrained(tmp_path)
    ours = load_classifier(tmp_path, task=Task(kind="single_label", labels=LABELS))
    rows = make_rows(model, pair=True)
    with torch.no_grad():
        expected = encoder(**inputs_of(model, rows)).last_hidden_state
        found = ours.encoder(Batch.from_rows(rows)).last_hidden_state
    assert_close(found, expected[padded(rows, 0)["attention_mask"] == 1])
    assert set(ours.new_parameters) >= {"classifier.output.weight", "classifier.output.bias"}
    with pytest.raises(CheckpointError, match="an encoder without a classifier; fine-tune it first"):
        load_classifier(tmp_path)


def test_legacy_gamma_and_beta_are_read(model: Any, tmp_path: Path) -> None:
    model.save_pretrained(tmp_path)
    renamed = {}
    for name, tensor in safetensors.torch.load_file(tmp_path / "model.safetensors").items():
        name = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
        renamed[name] = tensor
    # DistilBERT's layers and ModernBERT spell their norms otherwise, which were never called gamma
    expected = {"distilbert": 1, "modernbert": 0}.get(model.config.model_type, 7)
    assert sum(name.endswith(".gamma") for name in renamed) == expected
    safetensors.torch.save_file(renamed, tmp_path / "model.safetensors")
    rows = make_rows(model)
    assert_close(predict_logits(load_classifier(tmp_path), rows), logits_of(model, rows))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_weights_load_as_float32(model: Any, dtype: torch.dtype, tmp_path: Path) -> None:
    model.to(dtype).save_pretrained(tmp_path)
    ours = load_classifier(tmp_path)
    assert {parameter.dtype for parameter in ours.parameters()} == {torch.float32}
    rows = make_rows(model)
    # Loaded anew: Transformers' own rotations have been rounded with the weights.
    expected = AutoModelForSequenceClassification.from_pretrained(tmp_path, dtype=torch.float32)
    assert_close(predict_logits(ours, rows), logits_of(expected.eval(), rows))


def test_pickled_weights_are_read(model: Any, tmp_path: Path) -> None:
    model.config.architectures = [type(model).__name__]
    model.config.save_pretrained(tmp_path)
    torch.save(model.state_dict(), tmp_path / "pytorch_model.bin")
    rows = make_rows(model)
    assert_close(predict_logits(load_classifier(tmp_path), rows), logits_of(model, rows))


class Payload:
    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return Path.touch, (Path("payload"),)


def test_pickle_that_would_run_code_is_refused_and_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    theirs("bert", SIZES).save_pretrained(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    torch.save({"bert.pooler.dense.bias": Payload()}, tmp_path / "pytorch_model.bin")
    with pytest.raises(CheckpointError, match=r"pytorch_model.bin: damaged, or holds more than tensors"):
        load_classifier(tmp_path)
    assert not Path("payload").exists()


def test_sharded_weights_are_read(model: Any, tmp_path: Path) -> None:
    model.save_pretrained(tmp_path, max_shard_size="30KB")
    assert len(list(tmp_path.glob("model-*.safetensors"))) > 1
    rows = make_rows(model)
    assert_close(predict_logits(load_classifier(tmp_path), rows), logits_of(model, rows))


def test_missing_shard_is_refused(tmp_path: Path) -> None:
    theirs("bert", SIZES).save_pretrained(tmp_path, max_shard_size="30KB")
    next(tmp_path.glob("model-*.safetensors")).unlink()
    with pytest.raises(CheckpointError, match="the weights cannot be read"):
        load_classifier(tmp_path)


@pytest.mark.parametrize(("pad_token_id", "max_tokens"), [(0, 513), (1, 512), (3, 510)])
def test_roberta_position_table_of_514_holds_fewer_tokens(
    pad_token_id: int, max_tokens: int, tmp_path: Path
) -> None:
    small = {"num_hidden_layers": 1, "max_position_embeddings": 514, "pad_token_id": pad_token_id}
    model = theirs("roberta", ROBERTA | small)
    model.save_pretrained(tmp_path)
    assert read_config(tmp_path).max_tokens == max_tokens
    rows = make_rows(model, [max_tokens, 3])
    assert_close(predict_logits(load_classifier(tmp_path), rows), logits_of(model, rows))


def test_bert_position_table_of_512_holds_512_tokens(tmp_path: Path) -> None:
    model = theirs("bert", SIZES | {"num_hidden_layers": 1, "max_position_embeddings": 512})
    model.save_pretrained(tmp_path)
    assert read_config(tmp_path).max_tokens == 512
    rows = make_rows(model, [512, 3])
    assert_close(predict_logits(load_classifier(tmp_path), rows), logits_of(model, rows))


@pytest.mark.parametrize("family", ["gpt2", "albert", "deberta-v2", "modern-bert", "t5", "mpnet", "Bert"])
def test_other_families_are_refused_by_name_with_the_list(family: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": family}))
    supported = "bert, roberta, xlm-roberta, camembert, distilbert, electra, modernbert"
    with pytest.raises(
        CheckpointError, match=f"family '{family}' is not supported; supported are {supported}"
    ):
        load_classifier(tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": None}, "no 'model_type'; expected one of bert"),
        (
            {"position_embedding_type": "relative_key"},
            "position_embedding_type 'relative_key' is not supported",
        ),
        ({"hidden_act": "mish"}, "activation 'mish' is not supported; supported are gelu"),
        ({"is_decoder": True}, "this is a decoder"),
        (
            {"quantization_config": {"quant_method": "fp8"}},
            r"quantized weights \(fp8\) are not supported; use the model in float",
        ),
        ({"num_attention_heads": 5}, "hidden_size 32 is not a multiple of num_attention_heads 5"),
        ({"vocab_size": 401}, r"embeddings.word.weight has shape \[400, 32\], config.json says \[401, 32\]"),
        ({"num_hidden_layers": 4}, r"the weights of encoder.layers.3.attention.qkv.weight are missing"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_config_that_does_not_fit_is_refused(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    theirs("bert", SIZES).save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text()) | changes
    (tmp_path / "config.json").write_text(json.dumps({k: v for k, v in config.items() if v is not None}))
    with pytest.raises(CheckpointError, match=message):
        load_classifier(tmp_path)


def test_tokenizer_with_more_pieces_than_the_table_has_rows_is_refused(tmp_path: Path) -> None:
    theirs("bert", SIZES | {"vocab_size": 200}).save_pretrained(tmp_path)
    add_tokenizer(tmp_path)
    with pytest.raises(
        CheckpointError, match="the tokenizer has 270 pieces, the model's table only 200 rows"
    ):
        read_tokenizer(tmp_path)
