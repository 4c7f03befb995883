"""Each family with random weights: logits, gradients and files are those of Transformers."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
from transformers import AutoConfig, AutoModel, AutoModelForSequenceClassification
from transformers.utils import logging

from encoder import huggingface
from encoder.batches import Batch
from encoder.checkpoint import load_classifier, save_classifier
from encoder.errors import CheckpointError
from encoder.model_folder import read_config, read_tokenizer
from encoder.prediction import predict_logits
from encoder.rows import TokenizedRows
from encoder.task import Task
from tests.encoder.tokenizer_folders import BERT_CONFIG, ROBERTA_NAMES, byte_level_bpe, save_json, wordpiece

logging.set_verbosity_error()
logging.disable_progress_bar()

VOCABULARY = 400
LABELS = ("spam", "ham", "eggs")
LENGTHS = [7, 1, 19, 2, 12, 12, 5]
TOLERANCE = 1e-5

SIZES: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "max_position_embeddings": 40,
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 48,
}
DISTILBERT: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "max_position_embeddings": 40,
    "dim": 32,
    "n_layers": 3,
    "n_heads": 4,
    "hidden_dim": 48,
}
ROBERTA = SIZES | {"type_vocab_size": 1}
# Windows of 3 tokens to either side, so that most rows are longer.
MODERNBERT = SIZES | {"num_hidden_layers": 4, "local_attention": 6, "pad_token_id": 0}

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "bert": ("bert", SIZES),
    "bert relu": ("bert", SIZES | {"hidden_act": "relu"}),
    "bert gelu_new": ("bert", SIZES | {"hidden_act": "gelu_new", "layer_norm_eps": 1e-5}),
    "bert silu": ("bert", SIZES | {"hidden_act": "silu", "hidden_size": 24, "num_attention_heads": 3}),
    "roberta": ("roberta", ROBERTA),
    "roberta pad 0": ("roberta", ROBERTA | {"pad_token_id": 0}),
    "roberta pad 3": ("roberta", ROBERTA | {"pad_token_id": 3}),
    "xlm-roberta": ("xlm-roberta", ROBERTA | {"layer_norm_eps": 1e-5}),
    "camembert": ("camembert", ROBERTA | {"hidden_act": "gelu_pytorch_tanh"}),
    "distilbert": ("distilbert", DISTILBERT),
    "distilbert relu": ("distilbert", DISTILBERT | {"activation": "relu"}),
    "modernbert": ("modernbert", MODERNBERT),
    "modernbert mean": (
        "modernbert",
        MODERNBERT
        | {
            "classifier_pooling": "mean",
            "classifier_bias": True,
            "classifier_activation": "silu",
            "layer_types": ["sliding_attention", "full_attention", "sliding_attention", "full_attention"],
            "rope_parameters": {
                "full_attention": {"rope_type": "default", "rope_theta": 500.0},
                "sliding_attention": {"rope_type": "default", "rope_theta": 50.0},
            },
        },
    ),
    "modernbert biased": (
        "modernbert",
        MODERNBERT
        | {
            "norm_bias": True,
            "attention_bias": True,
            "mlp_bias": True,
            "hidden_activation": "silu",
            "global_attn_every_n_layers": 2,
            "global_rope_theta": 700.0,
            "local_rope_theta": 70.0,
        },
    ),
    "electra": ("electra", SIZES | {"embedding_size": 32}),
    "electra projected": ("electra", SIZES | {"embedding_size": 16}),
}
FAMILIES = {name: CASES[name] for name in ("bert", "roberta", "xlm-roberta", "camembert", "distilbert")} | {
    "electra": CASES["electra projected"],
    "modernbert": CASES["modernbert"],
}
NO_DROPOUT = {
    "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "classifier_dropout": 0.0,
    "dropout": 0.0, "attention_dropout": 0.0, "seq_classif_dropout": 0.0, "mlp_dropout": 0.0,
}  # fmt: skip


def theirs(family: str, options: dict[str, Any], **more: Any) -> Any:
    """A Transformers classifier in evaluation mode, no parameter at a value that could hide a mistake."""
    config = AutoConfig.for_model(
        family,
        **options,
        id2label=dict(enumerate(LABELS)),
        label2id={label: i for i, label in enumerate(LABELS)},
        **more,
    )
    torch.manual_seed(0)
    return randomised(AutoModelForSequenceClassification.from_config(config))


def randomised(model: Any) -> Any:
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            neutral = 1.0 if parameter.dim() == 1 and name.endswith("weight") else 0.0
            parameter.copy_(neutral + 0.2 * torch.randn(parameter.shape))
    return model.eval()


def tame(model: Any) -> None:
    """Weights as large as after training, so that rounding is measured and not a chaotic model."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(0.3 if parameter.dim() > 1 else 1)


def make_rows(model: Any, lengths: list[int] = LENGTHS, *, pair: bool = False) -> TokenizedRows:
    """Rows of random tokens; in a pair the second half is segment 1 where the family has segments."""
    rng = np.random.default_rng(1)
    segments = pair and getattr(model.config, "type_vocab_size", 0) > 1
    types = [np.arange(n) >= (n + 1) // 2 if segments else np.zeros(n) for n in lengths]
    return TokenizedRows(
        input_ids=rng.integers(5, VOCABULARY, sum(lengths)).astype(np.int32),
        token_type_ids=np.concatenate(types).astype(np.int8),
        offsets=np.cumsum([0, *lengths]).astype(np.int64),
    )


def padded(rows: TokenizedRows, pad_token_id: int) -> dict[str, torch.Tensor]:
    """``input_ids``, ``attention_mask`` and ``token_type_ids``, int64 [B, T], padded on the right."""
    B, T = len(rows), int(rows.lengths.max())
    exists = np.arange(T) < rows.lengths[:, None]
    input_ids, types = np.full((B, T), pad_token_id), np.zeros((B, T), dtype=np.int64)
    input_ids[exists], types[exists] = rows.input_ids, rows.token_type_ids
    arrays = {"input_ids": input_ids, "attention_mask": exists.astype(np.int64), "token_type_ids": types}
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


def inputs_of(model: Any, rows: TokenizedRows) -> dict[str, torch.Tensor]:
    inputs = padded(rows, model.config.pad_token_id or 0)
    if model.config.model_type in ("distilbert", "modernbert"):
        inputs.pop("token_type_ids")
    return inputs


def logits_of(model: Any, rows: TokenizedRows) -> np.ndarray:
    with torch.no_grad():
        return np.asarray(model(**inputs_of(model, rows)).logits)


def assert_close(found: Any, expected: Any, tolerance: float = TOLERANCE) -> None:
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=tolerance, atol=tolerance)


def add_tokenizer(folder: Path) -> None:
    roberta = json.loads((folder / "config.json").read_text())["model_type"] in huggingface.ROBERTA_LIKE
    config = ROBERTA_NAMES | {"tokenizer_class": "PreTrainedTokenizerFast"} if roberta else BERT_CONFIG
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    save_json(byte_level_bpe() if roberta else wordpiece(), folder)


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Any:
    family, options = CASES[request.param]
    return theirs(family, options)


@pytest.fixture(params=FAMILIES)
def model(request: pytest.FixtureRequest) -> Any:
    family, options = FAMILIES[request.param]
    return theirs(family, options)


@pytest.mark.parametrize("pair", [False, True], ids=["single", "pair"])
def test_logits_are_those_of_transformers_in_a_batch_and_alone(case: Any, pair: bool, tmp_path: Path) -> None:
    case.save_pretrained(tmp_path)
    ours = load_classifier(tmp_path)
    rows = make_rows(case, pair=pair)
    expected = logits_of(case, rows)
    assert_close(predict_logits(ours, rows), expected)
    assert_close(predict_logits(ours, rows, batch_size=1), expected)
    assert ours.task == Task(kind="single_label", labels=LABELS)


def test_padded_inputs_give_the_logits_of_packed_ones(model: Any, tmp_path: Path) -> None:
    model.save_pretrained(tmp_path)
    rows = make_rows(model, pair=True)
    with torch.no_grad():
        logits = load_classifier(tmp_path)(Batch.from_padded(**padded(rows, 0)))
    assert_close(logits, logits_of(model, rows))


@pytest.mark.parametrize("pair", [False, True], ids=["single", "pair"])
@pytest.mark.parametrize(("precision", "tolerance"), [("fp32", 1e-5), ("bf16", 0.05)])
def test_logits_of_a_row_do_not_change_with_its_batch(
    case: Any, pair: bool, precision: Any, tolerance: float, tmp_path: Path
) -> None:
    if precision == "bf16":
        tame(case)
    case.save_pretrained(tmp_path)
    ours = load_classifier(tmp_path)
    rows = make_rows(case, [*LENGTHS, 0, 30, *LENGTHS[::-1], 1, 36], pair=pair)
    alone = predict_logits(ours, rows, batch_size=1, precision=precision)
    for batch_size in (2, 3, len(rows)):  # the last: padded in parts
        together = predict_logits(ours, rows, batch_size=batch_size, precision=precision)
        assert_close(together, alone, tolerance)
    order = np.random.default_rng(0).permutation(len(rows))
    shuffled = predict_logits(ours, rows.select(order), batch_size=11, precision=precision)
    assert_close(shuffled, alone[order], tolerance)


def test_gradients_are_those_of_transformers(model: Any, tmp_path: Path) -> None:
    model = theirs(model.config.model_type, FAMILIES[model.config.model_type][1], **NO_DROPOUT)
    model.save_pretrained(tmp_path)
    ours = load_classifier(tmp_path).train()
    rows = make_rows(model, pair=True)
    labels = torch.arange(len(rows)) % len(LABELS)
    torch.nn.functional.cross_entropy(ours(Batch.from_rows(rows)), labels).backward()
    model.train()(**inputs_of(model, rows), labels=labels).loss.backward()
    expected = {name: parameter.grad for name, parameter in model.named_parameters()}
    compared = set()
    for module, parts in huggingface.parameter_names(ours.config).items():
        if module.startswith("head"):  # of a language model
            continue
        for kind, parameter in ours.get_submodule(module).named_parameters():
            assert parameter.grad is not None
            for part, gradient in zip(parts, parameter.grad.chunk(len(parts)), strict=True):
                assert_close(gradient, expected[f"{part}.{kind}"])
                compared.add(f"{part}.{kind}")
    assert compared == expected.keys()


def test_hidden_states_and_attentions_are_those_of_transformers(model: Any, tmp_path: Path) -> None:
    model.set_attn_implementation("eager")
    model.save_pretrained(tmp_path)
    rows = make_rows(model, pair=True)
    with torch.no_grad():
        expected = model(**inputs_of(model, rows), output_hidden_states=True, output_attentions=True)
        found = load_classifier(tmp_path).encoder(
            Batch.from_rows(rows), output_hidden_states=True, output_attentions=True
        )
    exists = padded(rows, 0)["attention_mask"] == 1
    assert len(found.hidden_states) == len(expected.hidden_states) == model.config.num_hidden_layers + 1
    for ours, other in zip(found.hidden_states, expected.hidden_states, strict=True):
        assert_close(ours, other[exists])
    assert len(found.attentions) == len(expected.attentions) == model.config.num_hidden_layers
    for ours, other in zip(found.attentions, expected.attentions, strict=True):
        assert_close(ours.transpose(1, 2)[exists], other.transpose(1, 2)[exists])


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_row_without_tokens_gives_no_nan_and_changes_no_other(
    model: Any, precision: Any, tmp_path: Path
) -> None:
    model.save_pretrained(tmp_path)
    ours = load_classifier(tmp_path)
    rows = make_rows(model, [4, 0, 30, 1])
    logits = predict_logits(ours, rows, precision=precision)
    assert np.isfinite(logits).all()
    others = predict_logits(ours, rows.select([0, 2, 3]), precision=precision)
    assert_close(logits[[0, 2, 3]], others, TOLERANCE if precision == "fp32" else 0.05)
    assert np.isfinite(predict_logits(ours, rows.select([1, 1]), precision=precision)).all()


def test_bf16_with_heavy_padding_is_close_and_free_of_nan(model: Any, tmp_path: Path) -> None:
    tame(model)
    model.save_pretrained(tmp_path)
    ours = load_classifier(tmp_path)
    rows = make_rows(model, [1, 2, 36, 1, 1, 3])
    logits = predict_logits(ours, rows, precision="bf16")
    assert logits.dtype == np.float32
    assert_close(logits, logits_of(model, rows), 0.03)


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


def test_modernbert_of_texts_much_longer_than_its_window_is_that_of_transformers(tmp_path: Path) -> None:
    model = theirs("modernbert", MODERNBERT | {"max_position_embeddings": 600})
    model.save_pretrained(tmp_path)
    ours = load_classifier(tmp_path)
    for lengths in ([512], [500, 3, 130, 7]):  # in tiles; some rows in blocks
        rows = make_rows(model, lengths)
        assert_close(predict_logits(ours, rows), logits_of(model, rows))


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
