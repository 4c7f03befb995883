"""Tiny random encoders and rows, made without any file."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from encoder.config import ClassifierConfig, EncoderConfig, LayerShape
from encoder.model import Classifier, initialise_
from encoder.rows import TokenizedRows
from encoder.task import Task

VOCABULARY = 50


def _config(**changes: object) -> EncoderConfig:
    shape = LayerShape(heads=(0, 1, 2, 3), head_size=4, intermediate_size=24)
    defaults: dict[str, object] = {
        "family": "bert",
        "vocab_size": VOCABULARY,
        "hidden_size": 16,
        "embedding_size": 16,
        "max_position_embeddings": 40,
        "type_vocab_size": 2,
        "layers": (shape,) * 3,
        "initializer_range": 0.2,
        "classifier": ClassifierConfig(),
    }
    return EncoderConfig.model_validate(defaults | changes)


def _classifier(config: EncoderConfig | None = None, task: Task | None = None, seed: int = 0) -> Classifier:
    config = config or _config()
    model = Classifier(config, task or Task(kind="single_label", labels=("a", "b", "c")))
    initialise_(model, config, seed)
    generator = torch.Generator().manual_seed(seed + 1)
    with torch.no_grad():  # biases and LayerNorms away from 0 and 1, so that nothing hides behind them
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator))
    return model.eval()


def _rows(lengths: list[int], *, classes: int = 3, seed: int = 0) -> TokenizedRows:
    rng = np.random.default_rng(seed)
    total = sum(lengths)
    labels = rng.integers(0, classes, len(lengths))
    return TokenizedRows(
        input_ids=rng.integers(1, VOCABULARY, total).astype(np.int32),
        token_type_ids=rng.integers(0, 2, total).astype(np.int8),
        offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        labels=labels.astype(np.int64),
    )


@pytest.fixture
def make_config() -> Callable[..., EncoderConfig]:
    """A 3-layer post-norm config of hidden size 16; keyword arguments change it."""
    return _config


@pytest.fixture
def make_classifier() -> Callable[..., Classifier]:
    """A random 3-class classifier in evaluation mode, every parameter away from its neutral value."""
    return _classifier


@pytest.fixture
def make_rows() -> Callable[..., TokenizedRows]:
    """Random rows of the given lengths with random labels."""
    return _rows
