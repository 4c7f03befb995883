"""Score a fine-tuned model on labelled texts: an `EvaluateConfig` in, a `Result` out."""

import time
from typing import TYPE_CHECKING

from compress.deployed import warn_of_cpu
from encoder.errors import ConfigError
from recipes.account import make_account
from recipes.against import check_other, find_parent, score_against
from recipes.data_options import data_options
from recipes.evaluate_config import EvaluateConfig
from recipes.evaluation_data import read_evaluation_data
from recipes.first_look import look_before_measuring
from recipes.observer import Observer, Recorder, Silent
from recipes.result import Result, describe_model, describe_parent, save_run
from recipes.scoring import (
    FineTuned,
    choose_device_of,
    find_fine_tuned,
    find_logits,
    judge_logits,
    tokenize,
)

if TYPE_CHECKING:
    from encoder.data import TaskData


def evaluate(config: EvaluateConfig, observer: Observer | None = None) -> Result:
    """The scores of a model on one split, beside another model's. Labels are matched by name.

    Raises:
        ConfigError, DataError, CheckpointError: before anything is computed.
    """
    started = time.perf_counter()
    output = look_before_measuring(config, exported=True, needs_classifier=True)
    recorder = Recorder(observer or Silent())
    recorder.stage(f"Looking at {config.model}")
    found = find_fine_tuned(config.model, config.max_length, exported=True)
    other = _choose_other(config, found)
    device = choose_device_of(found, config.device, config.threads)
    for note in warn_of_cpu(found.export):
        recorder.note(note)
    data, split = _read(config, found, recorder)
    splits = tokenize(data, found.tokenizer, max_length=found.max_length, names=[split], observer=recorder)
    recorder.stage(f"Scoring the {split} rows")
    logits = find_logits(found, splits.rows[split], device=device, threads=config.threads, observer=recorder)
    scored = judge_logits(found.task, logits, data.labels(split))
    against = score_against(
        other, data, {split: scored}, device=device, threads=config.threads, observer=recorder
    )
    result = make_account(
        "evaluate",
        config,
        model=describe_model(config.model, found.folder, found, found.max_length),
        parent=describe_parent(config.model, found.folder),
        data=data,
        encoded=splits.encoded,
        scored={split: scored},
        against=against,
        notes=recorder.notes,
        seconds=time.perf_counter() - started,
    )
    save_run(result, output)
    return result


def _choose_other(config: EvaluateConfig, found: FineTuned) -> FineTuned | None:
    """The model to compare with; checked before anything is read or computed."""
    if config.against == "none":
        return None
    source = config.against or find_parent(found.folder)
    return None if source is None else check_other(source, found.task)


def _read(config: EvaluateConfig, found: FineTuned, observer: Observer) -> tuple["TaskData", str]:
    """The data, and the name of the split to score."""
    observer.stage(f"Reading {config.data}")
    data = read_evaluation_data(found, config.data, data_options(config, found.result))
    split = _choose_split(config, data)
    observer.data(data.report)
    return data, split


def _choose_split(config: EvaluateConfig, data: "TaskData") -> str:
    if config.split is None:
        return next(name for name in ("test", "validation", "train") if name in data.splits)
    if config.split not in data.splits:
        raise ConfigError(f"--split {config.split}: {config.data} has only {', '.join(data.splits)}")
    return config.split
