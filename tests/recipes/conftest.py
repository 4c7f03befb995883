"""A tiny model, fine-tuned once through the recipe."""

import pytest

from recipes.export import export
from recipes.export_config import ExportConfig
from recipes.finetune import finetune
from recipes.finetune_config import FinetuneConfig
from recipes.result import Result


@pytest.fixture(scope="session")
def finetuned(tiny_model, reviews, tmp_path_factory) -> Result:
    """The result of a run; ``output`` is its folder."""
    return finetune(
        FinetuneConfig(
            model=str(tiny_model),
            data=str(reviews),
            output=tmp_path_factory.mktemp("runs") / "reviews",
            learning_rate=3e-3,
            layer_decay=1.0,
            num_epochs=2,
            batch_size=8,
            max_length=12,
            precision="fp32",
            latency=False,
        )
    )


@pytest.fixture
def no_fresh_process(monkeypatch):
    """A pruning without its proof in a fresh process, which takes seconds and has tests of its own."""
    monkeypatch.setattr("recipes.pruning.prove_reloaded", lambda *_: 0.0)


@pytest.fixture(scope="session")
def exported(finetuned, reviews, tmp_path_factory):
    """The result of an export in fp32; ``output`` is its folder."""
    output = tmp_path_factory.mktemp("exports") / "reviews-onnx"
    options = {"model": finetuned.output, "data": str(reviews), "output": output}
    return export(ExportConfig(**options, latency=False))


@pytest.fixture
def finetuning(tiny_model, reviews, tmp_path):
    """The options of a quick fine-tuning that learns the task."""
    return {
        "model": str(tiny_model),
        "data": str(reviews),
        "output": tmp_path / "out",
        "learning_rate": 3e-3,
        "layer_decay": 1.0,
        "num_epochs": 4,
        "batch_size": 8,
        "precision": "fp32",
        "latency": False,
    }
