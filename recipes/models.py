"""The models of a measurement, looked at before torch is loaded: what is no model ends it at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from encoder.config import EncoderConfig
from encoder.errors import CheckpointError, EncError
from encoder.model_folder import is_exported, read_config, read_task, read_tokenizer, resolve_model
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
    def is_exported(self) -> bool:
        """Whether it is a graph, which runs as it is."""
        return is_exported(self.folder)

    @property
    def max_tokens(self) -> int:
        """The longest row it can read."""
        return self.config.max_tokens

    def read_tokenizer(self) -> Tokenizer:
        """Its tokenizer."""
        return read_tokenizer(self.folder)

    def max_length(self) -> int:
        """Tokens at which texts were cut when it was made, otherwise the most it can read."""
        before = read_result(self.folder)
        return before.model.max_length if before else self.max_tokens


def find_models(names: Sequence[str], *, exported: bool = False) -> list[FoundModel]:
    """The classifiers called ``names``: folders, built-in names, hub names; ``exported`` ones where welcome.

    Raises:
        CheckpointError: some are none, with a line for each.
    """
    found: list[FoundModel] = []
    problems: list[str] = []
    for name in names:
        try:
            found.append(_find(name, exported))
        except EncError as error:
            problems.append(str(error))
    if problems:
        raise CheckpointError.from_problems(list(dict.fromkeys(problems)))
    return found


def _find(name: str, exported: bool) -> FoundModel:
    if name.replace(",", "").isdigit() and not Path(name).is_dir():
        raise CheckpointError(f"{name}: no such folder; a list of numbers has commas and no blanks: 1,8,32")
    folder = resolve_model(name, exported=exported)
    config, task = read_config(folder), read_task(folder)
    if task is None:
        raise no_classifier(name)
    return FoundModel(name, folder, config, task)


def no_classifier(name: str) -> CheckpointError:
    """The error for a model that cannot label anything yet, by the name that was given for it."""
    return CheckpointError(
        f"{name}: an encoder without a classifier; fine-tune it first: enc finetune --model {name}"
    )
