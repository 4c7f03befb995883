"""Fine-tune an encoder on labelled texts: a `FinetuneConfig` in, a model folder and its `Result` out.

All that is cheap comes first: a wrong option, a column that is not there or a label that does not fit
ends the run before anything is computed. The folder appears under its name only when it is complete.
"""

import json
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from compress.latency import Latency, Unavailable
from compress.machine import describe_machine
from compress.size import Size
from encoder.errors import ConfigError, did_you_mean
from encoder.files import OutputFolder, write_atomic, write_json
from encoder.metrics import main_metric, metric_names
from encoder.model_folder import read_config, read_tokenizer, resolve_model
from encoder.task import in_words
from recipes.against import find_comparable, score_against
from recipes.finetune_config import FinetuneConfig
from recipes.observer import Observer, Recorder, Silent
from recipes.result import (
    RUN_FILE,
    Epoch,
    Parent,
    Result,
    TrainingResult,
    describe_data,
    describe_model,
    describe_parent,
    now,
    read_result,
    without_nan,
)
from recipes.scoring import (
    FineTuned,
    Scored,
    Splits,
    choose_device,
    choose_precision,
    score_split,
    tokenize,
)

if TYPE_CHECKING:
    from encoder.data import TaskData
    from encoder.freezing import Frozen
    from encoder.model import Classifier
    from encoder.tokenizer import Tokenizer
    from encoder.training import TrainingOutcome

# Within the work folder, all that an interrupted run needs to continue; gone when it is finished.
TRAINING_FOLDER = "training"
# What an interrupted run must have in common with the one that continues it.
STARTED_FILE = "started.json"
# Options that change nothing about the model that comes out. The model and the data are compared by content.
FREE_TO_CHANGE = ("model", "data", "output", "latency", "overwrite", "resume", "threads")
LATENCY_BATCH_SIZES = (1, 32)


@dataclass(frozen=True)
class Prepared:
    """All that training needs, read and checked.

    ``before`` is the model that it starts from, where that is a classifier with the same labels already.
    """

    model: "Classifier"
    tokenizer: "Tokenizer"
    data: "TaskData"
    frozen: "Frozen"
    parent: Parent
    before: FineTuned | None
    max_length: int
    device: str


def finetune(config: FinetuneConfig, observer: Observer | None = None) -> Result:
    """Train, choose the best epoch, score it, measure it, save it.

    With ``resume`` a run of the same options goes on where it was interrupted; one that is finished is
    returned as it is.

    Raises:
        ConfigError, DataError, CheckpointError: before any training, with all that is wrong of a kind.
    """
    observer = observer or Silent()
    started = time.perf_counter()
    if config.resume and (finished := read_result(config.output)) is not None:
        observer.note(f"{config.output} is finished; there is nothing to resume.")
        return finished
    folder = OutputFolder(config.output, overwrite=config.overwrite, resume=config.resume)
    folder.check()
    if config.resume and (finished := read_result(folder.work)) is not None:  # killed while tidying up
        _finish(folder)
        return finished
    recorder = Recorder(observer)
    prepared = _prepare(config, recorder)
    _claim(folder, config, prepared)
    splits, training = _train(config, prepared, folder.work, recorder)
    scored = _score(prepared, splits, recorder)
    against = score_against(prepared.before, prepared.data, scored, device=prepared.device, observer=recorder)
    if against is not None and against.split == "validation" and len(training.epochs) > 1:
        recorder.note(
            f"Without test rows, {against.source} is compared with on those that chose the epoch; that "
            "favours the new model."
        )
    latency, size = _save_and_measure(config, prepared, splits, folder.work, recorder)

    result = Result(
        command="finetune",
        created=now(),
        seconds=time.perf_counter() - started,
        output=str(config.output),
        config=config.model_dump(mode="json"),
        seed=config.seed,
        machine=describe_machine(),
        model=describe_model(str(config.output), folder.work, prepared.model, prepared.max_length),
        parent=prepared.parent,
        data=describe_data(prepared.data, splits.encoded),
        training=training,
        main_metric=main_metric(prepared.data.task),
        scores={name: one.scores for name, one in scored.items()},
        intervals={name: one.interval for name, one in scored.items() if one.interval is not None},
        against=against,
        latency=latency,
        size=size,
        notes=tuple(recorder.notes),
    )
    write_atomic(folder.work / RUN_FILE, result.to_json())
    _finish(folder)
    return result


def _finish(folder: OutputFolder) -> None:
    """Tidy up the work, which run.json says is complete, and give it its name."""
    shutil.rmtree(folder.work / TRAINING_FOLDER, ignore_errors=True)
    folder.finish()


def _prepare(config: FinetuneConfig, observer: Observer) -> Prepared:
    """Read and check everything, the cheapest first."""
    from encoder.checkpoint import load_classifier
    from encoder.data import DataOptions, read_data
    from encoder.freezing import Freezing, freeze_

    device = choose_device(config.device, config.threads)
    observer.stage(f"Looking at {config.model}")
    model_folder = resolve_model(config.model)
    _check_layers(config, read_config(model_folder).num_hidden_layers)
    tokenizer = read_tokenizer(model_folder)
    if config.max_length is not None and config.max_length > tokenizer.max_length:
        raise ConfigError(
            f"--max-length {config.max_length}: {config.model} holds {tokenizer.max_length} tokens at most"
        )
    for note in tokenizer.notes:
        observer.note(note)

    observer.stage(f"Reading {config.data}")
    data = read_data(
        config.data, DataOptions(**{name: getattr(config, name) for name in DataOptions.model_fields})
    )
    _check_task(config, data)
    observer.data(data.report)

    observer.stage(f"Loading {config.model}")
    model = load_classifier(model_folder, task=data.task, seed=config.seed)
    if model.new_parameters:
        count = sum(p.numel() for name, p in model.named_parameters() if name in model.new_parameters)
        observer.note(f"New, from random numbers: {count:,} parameters of the classifier.")
    freezing = Freezing(
        layers=config.freeze_layers,
        embeddings=config.freeze_embeddings,
        patterns=config.freeze,
        train_last=config.train_last,
        classifier_only=config.train_classifier_only,
    )
    frozen = freeze_(model, freezing)
    observer.note(frozen.description)
    observer.note(
        f"{frozen.trainable_parameters:,} of {frozen.total_parameters:,} parameters train "
        f"({frozen.trainable_parameters / frozen.total_parameters:.1%})."
    )
    return Prepared(
        model=model,
        tokenizer=tokenizer,
        data=data,
        frozen=frozen,
        parent=describe_parent(config.model, model_folder),
        before=find_comparable(config.model, model_folder, data.task),
        max_length=config.max_length or tokenizer.max_length,
        device=device,
    )


def _check_layers(config: FinetuneConfig, num_layers: int) -> None:
    """Refuse before the data is read what ``freeze_`` would refuse after."""
    problems = [
        f"{option} {count}: {config.model} has {num_layers} layers"
        for option, count in (("--freeze-layers", config.freeze_layers), ("--train-last", config.train_last))
        if count is not None and count > num_layers
    ]
    if problems:
        raise ConfigError.from_problems(problems)


def _check_task(config: FinetuneConfig, data: "TaskData") -> None:
    if "train" not in data.splits:
        raise ConfigError(f"{config.data} has no training rows; it has {', '.join(data.splits)}")
    names = metric_names(data.task.kind)
    if config.best_metric is not None and config.best_metric not in names:
        raise ConfigError(
            f"--best-metric {config.best_metric}: a {in_words(data.task.kind)} task has {', '.join(names)}"
            f"{did_you_mean(config.best_metric, names)}"
        )


def _claim(folder: OutputFolder, config: FinetuneConfig, prepared: Prepared) -> None:
    """Make the work folder, or check that the interrupted run in it was of the same kind."""
    this = {
        "model": prepared.parent.sha256,
        "data": prepared.data.fingerprint,
        **config.model_dump(mode="json", exclude=set(FREE_TO_CHANGE)),
    }
    started_file = folder.work / TRAINING_FOLDER / STARTED_FILE
    if config.resume and started_file.exists():
        before = json.loads(started_file.read_bytes())
        changed = [
            f"  {name}: {_short(before.get(name))} then, {_short(value)} now"
            for name, value in this.items()
            if before.get(name) != value
        ]
        if changed:
            raise ConfigError.from_problems(
                changed,
                title=f"{folder.work} was started with other options; --resume continues a run as it was, "
                "--overwrite starts again:",
            )
    (folder.open() / TRAINING_FOLDER).mkdir(exist_ok=True)
    write_json(started_file, this)


def _short(value: Any) -> str:
    """A value of started.json in an error; of a hash, enough to see that it differs."""
    return f"{value[:12]}…" if isinstance(value, str) and len(value) == 64 else json.dumps(value)


def _train(
    config: FinetuneConfig, prepared: Prepared, work: Path, observer: Observer
) -> tuple[Splits, TrainingResult]:
    import torch

    from encoder.model import start_at_base_rates_
    from encoder.optimizer import usual_learning_rate
    from encoder.training import TrainingConfig, train_

    observer.stage("Tokenizing")
    names = [name for name in ("train", "validation", "test") if name in prepared.data.splits]
    splits = tokenize(
        prepared.data, prepared.tokenizer, max_length=prepared.max_length, names=names, observer=observer
    )
    labels = splits.rows["train"].labels
    if prepared.model.new_parameters and labels is not None:
        start_at_base_rates_(prepared.model, labels)
    precision = choose_precision(config.precision, prepared.device)
    options = {name: getattr(config, name) for name in TrainingConfig.model_fields}
    rate = config.learning_rate or usual_learning_rate(prepared.model.config.hidden_size)
    training_config = TrainingConfig(**options | {"precision": precision, "learning_rate": rate})
    observer.stage(
        f"Training on {prepared.device} in {precision}, learning rate {rate:.2g}, "
        f"threads: {torch.get_num_threads()}"
    )
    outcome = train_(
        prepared.model,
        splits.rows["train"],
        splits.rows.get("validation"),
        training_config,
        work_folder=work / TRAINING_FOLDER,
        resume=config.resume,
        device=prepared.device,
        on_progress=observer.training,
    )
    if outcome.stopped_early:
        observer.note(
            f"Stopped after epoch {len(outcome.epochs)}: no better {outcome.best_metric} "
            f"for {config.early_stopping_patience} epochs."
        )
    return splits, _describe_training(prepared, outcome, precision, rate)


def _describe_training(
    prepared: Prepared, outcome: "TrainingOutcome", precision: Literal["fp32", "bf16"], rate: float
) -> TrainingResult:
    import torch

    from compress.memory import peak_memory_bytes

    epochs = (
        Epoch(
            epoch=scores.epoch,
            loss=scores.loss,
            validation=None if scores.validation is None else without_nan(scores.validation),
        )
        for scores in outcome.epochs
    )
    return TrainingResult(
        trainable_parameters=prepared.frozen.trainable_parameters,
        total_parameters=prepared.frozen.total_parameters,
        frozen=prepared.frozen.description,
        new_parameters=prepared.model.new_parameters,
        epochs=tuple(epochs),
        best_epoch=outcome.best_epoch,
        best_metric=outcome.best_metric,
        seconds=outcome.seconds,
        rows_per_s=outcome.rows_per_s,
        peak_memory_bytes=peak_memory_bytes(),
        device_memory_bytes=torch.cuda.max_memory_allocated() if prepared.device == "cuda" else None,
        precision=precision,
        learning_rate=rate,
        device=prepared.device,
        threads=torch.get_num_threads(),
        resumed_from_step=outcome.resumed_from_step,
    )


def _score(prepared: Prepared, splits: Splits, observer: Observer) -> dict[str, Scored]:
    scored = {}
    for name in ("validation", "test"):
        if name in splits.rows:
            observer.stage(f"Scoring the {name} rows")
            scored[name] = score_split(
                prepared.model, splits.rows[name], device=prepared.device, observer=observer
            )
    return scored


def _save_and_measure(
    config: FinetuneConfig, prepared: Prepared, splits: Splits, work: Path, observer: Observer
) -> tuple[tuple[Latency | Unavailable, ...], Size]:
    from compress.latency import measure_latency
    from compress.size import measure_size
    from compress.workload import from_rows
    from encoder.checkpoint import save_classifier

    save_classifier(prepared.model, prepared.tokenizer, work)
    latency: list[Latency | Unavailable] = []
    if config.latency:
        observer.stage("Measuring latency, in a process of its own")
        rows = next(splits.rows[name] for name in ("test", "validation", "train") if name in splits.rows)
        latency = measure_latency(
            work,
            from_rows(rows, LATENCY_BATCH_SIZES),
            devices=("cpu", "cuda"),
            threads=config.threads,
            progress=lambda done, total, what: observer.working(done, total),
        )
    return tuple(latency), measure_size(prepared.model, work)
