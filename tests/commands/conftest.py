"""A fine-tuned tiny model, made once through the command itself."""

from pathlib import Path

import pytest

from commands.app import run


@pytest.fixture(scope="session")
def finetuning(tiny_model, reviews, tmp_path_factory) -> list[str]:
    """The words of the command line that makes it."""
    options = {
        "--model": tiny_model,
        "--data": reviews,
        "--output": tmp_path_factory.mktemp("runs") / "reviews",
        "--learning-rate": 3e-3,
        "--layer-decay": 1.0,
        "--num-epochs": 4,
        "--batch-size": 8,
        "--freeze-layers": 1,
        "--precision": "fp32",
    }
    return ["finetune", *(str(word) for pair in options.items() for word in pair), "--no-latency"]


@pytest.fixture(scope="session")
def finetuned(finetuning) -> Path:
    assert run(finetuning) == 0
    return Path(finetuning[finetuning.index("--output") + 1])
