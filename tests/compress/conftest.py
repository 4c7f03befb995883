from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from encoder.checkpoint import save_classifier
from encoder.config import ClassifierConfig, EncoderConfig, LayerShape
from encoder.model import Classifier, initialise_
from encoder.rows import TokenizedRows
from encoder.task import Task


class NoTokenizer:
    """Stands where a tokenizer is saved with a model; measuring reads token ids only."""

    def save(self, folder: Path) -> None:
        (folder / "tokenizer.json").write_text("{}")


_LAYER = LayerShape(heads=(0, 1, 2, 3), head_size=4, intermediate_size=32, rope_theta=500.0)
_LOCAL = _LAYER.model_copy(update={"window": 2, "rope_theta": 50.0})
# All that ModernBERT has and BERT has not.
MODERN: dict[str, Any] = {
    "norm": "pre",
    "position_embedding": "rotary",
    "gated": True,
    "type_vocab_size": 0,
    "attention_bias": False,
    "feed_forward_bias": False,
    "norm_bias": False,
    "layers": (_LAYER.model_copy(update={"attention_norm": False}), _LOCAL, _LOCAL, _LAYER),
    "classifier": ClassifierConfig(activation="gelu", bias=False, norm=True),
}


ATTENDING: dict[str, Any] = {"norm": "pre", "residual": "attention"}
BLOCKS: dict[str, Any] = MODERN | {"residual": "block_attention", "residual_block_size": 3}
# Kinds of encoder that what is said of one has to hold for.
VARIANTS: dict[str, dict[str, Any]] = {
    "post": {},
    "pre": {"norm": "pre"},
    "modern": MODERN,
    "modern, mean": MODERN | {"classifier": ClassifierConfig(pooling="mean")},
    "attention residuals": ATTENDING,
    "blocks": BLOCKS,
}


def make_config(**changes: Any) -> EncoderConfig:
    shape = LayerShape(heads=(0, 1, 2, 3), head_size=4, intermediate_size=32)
    fields: dict[str, Any] = {
        "family": "bert",
        "vocab_size": 50,
        "hidden_size": 16,
        "embedding_size": 16,
        "max_position_embeddings": 40,
        "type_vocab_size": 2,
        "layers": (shape, shape),
        "classifier": ClassifierConfig(),
    }
    return EncoderConfig(**(fields | changes))


def make_classifier(config: EncoderConfig, *, seed: int = 0, scale: float = 0.3) -> Classifier:
    """Random weights, larger than usual so that the logits differ from each other."""
    model = Classifier(config, Task(kind="single_label", labels=("a", "b", "c")))
    initialise_(model, config.model_copy(update={"initializer_range": scale}), seed)
    generator = torch.Generator().manual_seed(seed + 1)
    with torch.no_grad():  # biases and LayerNorms away from 0 and 1, so that nothing hides behind them
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator))
    return model.eval()


def make_rows(lengths: list[int], *, seed: int = 0, vocab_size: int = 50) -> TokenizedRows:
    random = np.random.default_rng(seed)
    tokens = sum(lengths)
    return TokenizedRows(
        input_ids=random.integers(0, vocab_size, tokens, dtype=np.int32),
        token_type_ids=random.integers(0, 2, tokens).astype(np.int8),
        offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
    )


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved classifier: 2 layers, 50 pieces, at most 40 tokens."""
    folder = tmp_path_factory.mktemp("tiny")
    save_classifier(make_classifier(make_config()), NoTokenizer(), folder)  # type: ignore[arg-type]
    return folder


@pytest.fixture
def config_with() -> Callable[..., EncoderConfig]:
    """A tiny config, the given fields changed."""
    return make_config


@pytest.fixture
def classifier() -> Callable[..., Classifier]:
    """A tiny random classifier of a config."""
    return make_classifier


@pytest.fixture
def rows_of() -> Callable[..., TokenizedRows]:
    """Random rows of the given lengths."""
    return make_rows
