"""Models of Transformers with random weights, of each family, and rows for them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoConfig, AutoModelForSequenceClassification
from transformers.utils import logging

from encoder import huggingface
from encoder.rows import TokenizedRows
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
