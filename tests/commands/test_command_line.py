"""Claims about the command lines that a report shows."""

import importlib
import shlex
from pathlib import Path

import pytest

from commands.app import run
from recipes.command_line import CONFIGS, command_line

OPTIONS = {
    "finetune": {
        "model": "m",
        "data": "my data.csv",
        "output": Path("o"),
        "learning_rate": 3e-5,
        "latency": False,
        "freeze": ("*.bias", "embeddings.*"),
        "overwrite": True,
    },
    "freeze-sweep": {"model": "m", "data": "d", "output": Path("o"), "points": (0, 3), "seeds": 2},
    "evaluate": {"model": "$m'", "data": "d", "split": "test", "against": "other"},
    "bench": {
        "models": ("a", "b"),
        "data": "d",
        "batch_sizes": (1, 8),
        "runtimes": ("torch-fp32", "onnx-fp32"),
    },
    "profile": {"model": "m", "sequence_lengths": (16, 64)},
    "probe": {"model": "m", "data": "d"},
    "prune-heads": {"model": "m", "data": "d", "output": Path("o"), "sparsity": 0.25},
    "prune-neurons": {"model": "m", "data": "d", "output": Path("o"), "sparsity": 0.25, "repair": False},
    "drop-layers": {"model": "m", "data": "d", "output": Path("o"), "layers": 3},
    "distill": {"model": "m", "data": "d", "output": Path("o"), "layers": 3, "control": False},
    "depth": {"models": ("tiny", "b c.toml"), "corpus": ("a.txt",), "rows": 9, "output": Path("o")},
    "compress": {"model": "m", "data": "d", "output": Path("o"), "max_drop": 2.0, "target_speedup": 4.0},
    "pretrain": {"corpus": ("a.txt", "b c.txt"), "config": "tiny", "output": Path("o"), "lowercase": False},
    "export": {"model": "m", "data": "d", "output": Path("o"), "precision": "int8"},
}


@pytest.mark.parametrize("command", CONFIGS)
def test_command_line_of_a_run_gives_its_options_again(command, monkeypatch):
    options = CONFIGS[command](**OPTIONS[command])
    module = importlib.import_module(f"commands.{command.replace('-', '_')}")
    seen = []

    def stop(config, given, *more):
        seen.append(config(**given))
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "build_config", stop)
    words = shlex.split(command_line(command, options.model_dump(mode="json")))
    assert words[:2] == ["enc", command]
    run(words[1:])
    assert seen == [
        options.model_copy(update={"overwrite": False}) if "overwrite" in OPTIONS[command] else options
    ]


def test_command_that_is_not_known_is_told_with_all_options():
    line = command_line(
        "unheard-of", {"model": "m", "max_drop": 1.0, "quick": False, "exact": True, "none": None}
    )
    assert line == "enc unheard-of --model m --max-drop 1.0 --exact"
