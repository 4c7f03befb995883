"""What a pruning starts from: a fine-tuned model and data, read, checked and tokenized."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from encoder.config import EncoderConfig
from encoder.errors import ConfigError
from encoder.model_folder import read_config
from encoder.rows import TokenizedRows
from recipes.compress_config import CompressConfig
from recipes.data_options import data_options
from recipes.observer import Observer
from recipes.pruning_options import PruningOptions
from recipes.result import Parent
from recipes.scoring import (
    FineTuned,
    Scored,
    Splits,
    choose_device,
    find_fine_tuned,
    main_score,
    score_split,
    tokenize,
)

if TYPE_CHECKING:
    from encoder.data import TaskData
    from encoder.model import Classifier

# Of several splits, the first of these is the one that is reported first.
REPORTED = ("test", "validation")
# What least squares needs of memory grows with the tokens; beyond these they add nothing.
MOST_REPAIR_TOKENS = 32_768


@dataclass(frozen=True)
class PrunedFrom:
    """The model to prune, looked at but not loaded, and where to compute."""

    found: FineTuned
    config: EncoderConfig
    device: str


@dataclass(frozen=True)
class PruningInputs:
    """All that pruning needs. ``before`` are the scores of ``model`` by split."""

    start: PrunedFrom
    parent: Parent
    data: "TaskData"
    splits: Splits
    model: "Classifier"
    before: Mapping[str, Scored]

    @property
    def reported(self) -> str:
        """The split that models are compared on."""
        return next(name for name in REPORTED if name in self.splits.rows)

    def draw_training_rows(self, number: int, seed: int) -> TokenizedRows:
        """So many training rows, by ``seed``, or all there are; more of them hold the fewer ones."""
        train = self.splits.rows["train"]
        return train.select(np.random.default_rng(seed).permutation(len(train))[:number])

    def main_score(self, model: "Classifier", split: str, observer: Observer) -> float | None:
        """The main score of ``model`` on a split."""
        return main_score(model, self.splits.rows[split], device=self.start.device, observer=observer)


def look_at_model(options: PruningOptions | CompressConfig, observer: Observer) -> PrunedFrom:
    """The model that ``options`` name, before anything is computed.

    Raises:
        ConfigError, CheckpointError: no such model or device, no classifier, or no tokenizer.
    """
    device = choose_device(options.device, options.threads)
    observer.stage(f"Looking at {options.model}")
    found = find_fine_tuned(options.model, None)
    return PrunedFrom(found, read_config(found.folder), device)


def read_rows(options: PruningOptions | CompressConfig, start: PrunedFrom, observer: Observer) -> "TaskData":
    """The data, labels matched by name; nothing is computed.

    Raises:
        ConfigError, DataError: all that is wrong of a kind.
    """
    from encoder.data import read_data

    found = start.found
    observer.stage(f"Reading {options.data}")
    data = read_data(options.data, data_options(options, found.result), task=found.task)
    if "train" not in data.splits:
        raise ConfigError(
            f"{options.data} has no training rows; it has {', '.join(data.splits)}. Importance must not be "
            "found on the rows that scores are reported on"
        )
    observer.data(data.report)
    return data


def score_before(start: PrunedFrom, parent: Parent, data: "TaskData", observer: Observer) -> PruningInputs:
    """The model and its rows, with the scores that it has now.

    Raises:
        CheckpointError: it cannot be loaded.
    """
    from encoder.checkpoint import load_classifier

    found = start.found
    names = [name for name in ("train", *REPORTED) if name in data.splits]
    splits = tokenize(data, found.tokenizer, max_length=found.max_length, names=names, observer=observer)
    model = load_classifier(found.folder).to(start.device)
    before = {}
    for name in REPORTED:
        if name in splits.rows:
            observer.stage(f"Scoring the {name} rows before")
            before[name] = score_split(model, splits.rows[name], device=start.device, observer=observer)
    return PruningInputs(start, parent, data, splits, model, before)


def draw_scoring_rows(inputs: PruningInputs, number: int, targets: str, seed: int) -> TokenizedRows:
    """Training rows to find importance on, with their labels or with the model's own answers."""
    from compress.importance import own_answers

    rows = inputs.draw_training_rows(number, seed)
    if targets == "model":
        return own_answers(inputs.model, rows, seed=seed, device=inputs.start.device)
    return rows


def limit_tokens(rows: TokenizedRows, most: int = MOST_REPAIR_TOKENS) -> TokenizedRows:
    """The first of ``rows`` that have ``most`` tokens together; at least one row."""
    number = int(np.searchsorted(rows.offsets, most, side="right")) - 1
    return rows.select(np.arange(min(len(rows), max(1, number))))
