import json
import subprocess
import sys
from pathlib import Path

import pytest

from encoder.errors import CheckpointError
from encoder.model_folder import read_config, read_tokenizer, resolve_model


def test_a_folder_says_what_it_holds_without_torch(tiny_model: Path) -> None:
    script = (
        "import sys; from encoder.model_folder import *; folder = resolve_model(sys.argv[1])\n"
        "print(read_config(folder).num_hidden_layers, read_task(folder), read_tokenizer(folder).vocab_size)\n"
        "print([name for name in ('torch', 'datasets') if name in sys.modules])"
    )
    command = [sys.executable, "-c", script, str(tiny_model)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "3 None 53\n[]\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "config.json is missing"),
        ("{", "not readable as JSON"),
        ("[]", "expected a JSON object"),
        ('{"model_type": "gpt2"}', "'gpt2' is not supported; supported are bert, roberta"),
        ('{"model_type": "robertta"}', "did you mean 'roberta'"),
        ("{}", "no 'model_type'"),
        ('{"model_type": "bert"}', "the key '.*' is missing"),
    ],
)
def test_a_folder_that_is_no_model_is_refused_by_what_it_lacks(tmp_path, content, message) -> None:
    if content is not None:
        (tmp_path / "config.json").write_text(content)
    with pytest.raises(CheckpointError, match=message):
        read_config(tmp_path)


@pytest.mark.parametrize("source", ["./nowhere", "/no/such/folder", "a/b/c"])
def test_a_path_that_does_not_exist_is_not_looked_up_on_a_hub(source: str) -> None:
    with pytest.raises(CheckpointError, match="no such folder"):
        resolve_model(source)


def test_a_mistyped_folder_is_answered_with_its_neighbour_and_not_looked_up(tmp_path, monkeypatch) -> None:
    (tmp_path / "runs" / "news").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CheckpointError, match=r"runs/nwes: no such folder; did you mean 'runs/news'\?"):
        resolve_model("runs/nwes")


def test_a_file_is_not_a_folder(tmp_path: Path) -> None:
    (tmp_path / "model.bin").touch()
    with pytest.raises(CheckpointError, match="is a file"):
        resolve_model(str(tmp_path / "model.bin"))


def test_a_tokenizer_larger_than_the_table_is_refused(tiny_model: Path, tmp_path: Path) -> None:
    raw = json.loads((tiny_model / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(raw | {"vocab_size": 10}))
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (tmp_path / name).write_bytes((tiny_model / name).read_bytes())
    with pytest.raises(CheckpointError, match="do not belong together"):
        read_tokenizer(tmp_path)
