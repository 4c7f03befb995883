"""The models of a measurement, looked at before torch is loaded: what is no model ends it at once."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from encoder import huggingface, sources
from encoder.config import EncoderConfig
from encoder.errors import CheckpointError, EncError
from encoder.task import Task
from encoder.tokenizer import Tokenizer
from recipes.result import read_result


@dataclass(frozen=True)
class FoundModel:
    """A classifier as its folder describes it; no weights are read. ``source`` is how it was called."""

    source: str
    folder: Path
    config: EncoderConfig
    task: Task

    @property
    def max_tokens(self) -> int:
        """The longest row it can read."""
        return self.config.max_tokens

    def read_tokenizer(self) -> Tokenizer:
        """Its tokenizer; loads torch."""
        from encoder.checkpoint import read_tokenizer

        return read_tokenizer(self.folder)

    def max_length(self) -> int:
        """Tokens at which texts were cut when it was made, otherwise the most it can read."""
        before = read_result(self.folder)
        return before.model.max_length if before else self.max_tokens


def find_models(names: Sequence[str]) -> list[FoundModel]:
    """The classifiers called ``names``: folders, built-in names, hub names.

    Raises:
        CheckpointError: some are none, with a line for each.
    """
    found: list[FoundModel] = []
    problems: list[str] = []
    for name in names:
        try:
            found.append(_find(name))
        except EncError as error:
            problems.append(str(error))
    if problems:
        raise CheckpointError.from_problems(list(dict.fromkeys(problems)))
    return found


def _find(name: str) -> FoundModel:
    folder = _resolve(name)
    where = str(folder / "config.json")
    try:
        values: Any = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise CheckpointError(f"{name}: not a model folder: config.json is missing") from error
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{where}: not readable as JSON: {error}") from error
    if not isinstance(values, dict):
        raise CheckpointError(f"{where}: expected a JSON object, found {type(values).__name__}")
    config, task = huggingface.config_from_json(values, where), huggingface.task_from_json(values, where)
    if task is None:
        raise no_classifier(name)
    return FoundModel(name, folder, config, task)


def no_classifier(name: str) -> CheckpointError:
    """The error for a model that cannot label anything yet, by the name that was given for it."""
    return CheckpointError(
        f"{name}: an encoder without a classifier; fine-tune it first: enc finetune --model {name}"
    )


def _resolve(name: str) -> Path:
    folder = Path(name).expanduser()
    if folder.is_dir() and not sources.is_builtin_model(name):
        return folder
    if name.replace(",", "").isdigit():
        raise CheckpointError(f"{name}: no such folder; a list of numbers has commas and no blanks: 1,8,32")
    from encoder.checkpoint import resolve_model

    return resolve_model(name)
