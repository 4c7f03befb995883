"""A model's folder: found by its name, and what it says of itself. Reads no weights and needs no torch."""

import json
import re
from pathlib import Path
from typing import Any

from encoder import huggingface, sources
from encoder.config import EncoderConfig
from encoder.errors import CheckpointError, did_you_mean
from encoder.hub import download_config, download_model
from encoder.task import Task
from encoder.tokenizer import Tokenizer, load_tokenizer

CONFIG_FILE = "config.json"
WEIGHTS_FILE = "model.safetensors"
INDEX_FILE = "model.safetensors.index.json"
PICKLE_FILE = "pytorch_model.bin"
WEIGHTS_FILES = (WEIGHTS_FILE, INDEX_FILE, PICKLE_FILE)
GRAPH_FILE = "model.onnx"  # instead of weights, in a folder that `enc export` wrote
FAILED_FILE = "FAILED"  # why the model beside it must not be used
TOKENIZER_FILES = (
    "tokenizer.json", "vocab.txt", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"
)  # fmt: skip


def resolve_model(source: str, *, exported: bool = False) -> Path:
    """The local folder of a model given as a folder, a built-in name, or a hub name (``owner/name``).

    From a hub, config.json comes first, and what is not supported is refused before any weights are fetched.
    ``exported``: a folder that `enc export` wrote is welcome, which holds a graph to run and no weights to
    change.

    Raises:
        CheckpointError: there is none; one that is exported and not welcome; or one whose export failed.
    """
    return _usable(source, _find_here(source) or _download(source), exported=exported)


def peek_config(source: str, *, exported: bool = False) -> EncoderConfig:
    """The config of the model called ``source``; from a hub nothing else is fetched.

    Raises:
        CheckpointError: as ``resolve_model``.
    """
    folder = _find_here(source)
    if folder is None:
        path = download_config(source, CONFIG_FILE)
        return huggingface.config_from_json(read_json(path), f"{source}/{CONFIG_FILE}")
    return read_config(_usable(source, folder, exported=exported))


def _usable(source: str, folder: Path, *, exported: bool) -> Path:
    if (folder / FAILED_FILE).is_file():
        why = (folder / FAILED_FILE).read_text(encoding="utf-8", errors="replace").strip()
        raise CheckpointError(f"{source}: the export of this model failed, so it is not used: {why}")
    if not exported and is_exported(folder):
        raise CheckpointError(
            f"{source}: an exported model, which runs as it is and cannot be trained, changed or exported "
            "again; give the model that it was made of"
        )
    return folder


def is_exported(folder: Path) -> bool:
    """Whether ``folder`` holds, by its config.json, a graph and no weights: `enc export` wrote it."""
    try:
        own = json.loads((folder / CONFIG_FILE).read_bytes())["enc"]
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return isinstance(own, dict) and "export" in own


def _find_here(source: str) -> Path | None:
    """The folder on this machine; ``None`` where ``source`` can only be a name on the hub."""
    if sources.is_builtin_model(source):
        return sources.builtin_model_folder(source)
    folder = Path(source).expanduser()
    if folder.is_dir():
        return folder
    if folder.exists():
        raise CheckpointError(f"{source}: is a file; expected a model folder with {CONFIG_FILE}")
    if not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", source) or source.startswith((".", "/", "~")):
        raise CheckpointError(
            f"{source}: no such folder; built-in models: {', '.join(sources.BUILTIN_MODELS)}"
        )
    if folder.parent.name and folder.parent.is_dir():  # runs/typo is no model of the hub's user "runs"
        here = [str(path) for path in folder.parent.iterdir() if path.is_dir()]
        raise CheckpointError(f"{source}: no such folder{did_you_mean(source, here)}")
    return None


def _download(name: str) -> Path:
    def check_config(config: Path) -> None:
        huggingface.config_from_json(read_json(config), f"{name}/{CONFIG_FILE}")

    return download_model(
        name,
        config_file=CONFIG_FILE,
        check_config=check_config,
        files=TOKENIZER_FILES,
        weights=(("model*.safetensors", INDEX_FILE), (PICKLE_FILE,)),
    )


def read_json(path: Path) -> dict[str, Any]:
    """The object in one of a model folder's JSON files.

    Raises:
        CheckpointError: it is missing, or holds something else.
    """
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise CheckpointError(f"{path.parent}: not a model folder: {path.name} is missing") from error
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path}: not readable as JSON: {error}") from error
    if not isinstance(value, dict):
        raise CheckpointError(f"{path}: expected a JSON object, found {type(value).__name__}")
    return value


def read_config(folder: Path) -> EncoderConfig:
    """The config of the encoder in ``folder``; reads no weights."""
    return huggingface.config_from_json(read_json(folder / CONFIG_FILE), str(folder / CONFIG_FILE))


def read_task(folder: Path) -> Task | None:
    """The task of the classifier in ``folder``; None if there is only an encoder."""
    return huggingface.task_from_json(read_json(folder / CONFIG_FILE), str(folder / CONFIG_FILE))


def read_tokenizer(folder: Path) -> Tokenizer:
    """The tokenizer of the model in ``folder``."""
    config = read_config(folder)
    tokenizer = load_tokenizer(folder, max_tokens=config.max_tokens, pad_token_id=config.pad_token_id)
    if tokenizer.vocab_size > config.vocab_size:
        raise CheckpointError(
            f"{folder}: the tokenizer has {tokenizer.vocab_size} pieces, the model's table only "
            f"{config.vocab_size} rows; they do not belong together"
        )
    return tokenizer
