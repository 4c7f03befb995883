"""A fine-tuned tiny model, made once through the command itself."""

from pathlib import Path

import pytest

from commands.app import run


@pytest.fixture(scope="session")
def finetuned(tiny_model, reviews, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "reviews"
    options = {
        "--model": tiny_model,
        "--data": reviews,
        "--output": folder,
        "--learning-rate": 3e-3,
        "--layer-decay": 1.0,
        "--num-epochs": 4,
        "--batch-size": 8,
        "--freeze-layers": 1,
        "--precision": "fp32",
    }
    words = [str(word) for pair in options.items() for word in pair]
    assert run(["finetune", *words, "--no-latency"]) == 0
    return folder
