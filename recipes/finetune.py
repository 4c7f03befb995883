"""Fine-tune an encoder on labelled texts: a `FinetuneConfig` in, a model folder and its `Result` out.

All that is cheap comes first: a wrong option, a column that is not there or a label that does not fit
ends the run before anything is computed. The folder appears under its name only when it is complete.
"""

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from encoder.config import EncoderConfig
from encoder.errors import ConfigError
from encoder.files import write_atomic
from encoder.wording import counted
from recipes.finetune_config import FinetuneConfig
from recipes.first_look import look_first
from recipes.frozen_storage import go_to, open_prefixes, plan_storage
from recipes.observer import Observer, Recorder, Silent
from recipes.result import RUN_FILE, Result, TrainingResult
from recipes.resuming import claim, finish
from recipes.scoring import Splits
from recipes.trained import describe_training, make_result, score_and_save, telling_resumed
from recipes.training_inputs import (
    TrainingInputs,
    converted,
    load_start,
    look_at_start,
    make_training_config,
    read_training_data,
    tokenize_all,
)

if TYPE_CHECKING:
    from encoder.freezing import Frozen
    from encoder.model import Classifier


def finetune(config: FinetuneConfig, observer: Observer | None = None) -> Result:
    """Train, choose the best epoch, score it, measure it, save it.

    With ``resume`` a run of the same options goes on where it was interrupted; one that is finished is
    returned as it is.

    Raises:
        ConfigError, DataError, CheckpointError: before any training, with all that is wrong of a kind.
    """
    started = time.perf_counter()
    recorder = Recorder(observer or Silent())
    folder, finished = look_first(
        "finetune", config, recorder, check_shape=lambda shape: check_shape(config, shape)
    )
    if finished is not None:
        return finished
    start = look_at_start(config, recorder)
    start = replace(start, config=check_shape(config, start.config))
    inputs = read_training_data(config, start, recorder)
    from encoder.frozen_prefix import frozen_depth  # torch: not before all of that is found right

    model = load_start(inputs, config.seed, recorder)
    frozen = _freeze(config, model, recorder)
    splits = tokenize_all(inputs, recorder)
    depth = frozen_depth(model) if config.cache_frozen else 0
    parts = [splits.rows[name] for name in ("train", "validation") if name in splits.rows]
    on_disk = plan_storage(config, start.config, parts, [depth], recorder)
    work = claim(folder, config, model=inputs.parent.sha256, data=inputs.data.fingerprint)
    storage = work if on_disk else None
    training = _train(
        config, model, frozen, inputs, splits, recorder, work=work, depth=depth, storage=storage
    )
    trained = score_and_save(
        model, inputs, splits, folder.work, config, recorder, chosen_on_validation=len(training.epochs) > 1
    )
    seconds = time.perf_counter() - started
    result = make_result("finetune", config, inputs, splits, training, trained, recorder, seconds=seconds)
    write_atomic(folder.work / RUN_FILE, result.to_json())
    finish(folder)
    return result


def check_shape(config: FinetuneConfig, shape: EncoderConfig) -> EncoderConfig:
    """The shape that is trained, of a model of this ``shape``.

    Raises:
        ConfigError: layers to freeze that are not there, or a residual that it cannot be converted to.
    """
    problems = [
        f"{option} {count}: {config.model} has {counted(shape.num_hidden_layers, 'layer')}"
        for option, count in (("--freeze-layers", config.freeze_layers), ("--train-last", config.train_last))
        if count is not None and count > shape.num_hidden_layers
    ]
    try:
        shape = converted(config, shape)
    except ConfigError as error:
        problems.append(str(error))
    if problems:
        raise ConfigError.from_problems(problems)
    return shape


def _freeze(config: FinetuneConfig, model: "Classifier", observer: Observer) -> "Frozen":
    from encoder.freezing import Freezing, freeze_

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
    return frozen


def _train(
    config: FinetuneConfig,
    model: "Classifier",
    frozen: "Frozen",
    inputs: TrainingInputs,
    splits: Splits,
    observer: Observer,
    *,
    work: Path,
    depth: int,
    storage: Path | None,
) -> TrainingResult:
    """Train ``model``; its bottom ``depth`` layers are computed once, and kept in files in ``storage``."""
    import torch

    from encoder.model import start_at_base_rates_
    from encoder.training import train_

    train, device = splits.rows["train"], inputs.start.device
    training_config = make_training_config(config, inputs.start)
    if model.new_parameters and train.labels is not None:
        start_at_base_rates_(model, train.labels)
    validation = splits.rows.get("validation")
    with open_prefixes(train, validation, training_config, device=device, folder=storage) as prefixes:
        before = time.perf_counter()
        if depth:
            observer.stage("Computing the frozen layers, once")
            go_to(prefixes, model, depth, observer)
        prefix_seconds = time.perf_counter() - before
        observer.stage(
            f"Training on {device} in {training_config.precision}, "
            f"learning rate {training_config.learning_rate:.2g}, threads: {torch.get_num_threads()}"
        )
        rows = [prefix.rows for prefix in prefixes]
        outcome = train_(
            model,
            rows[0],
            rows[1] if len(rows) > 1 else None,
            training_config,
            work_folder=work,
            resume=config.resume,
            device=device,
            on_progress=observer.training,
            on_resume=telling_resumed(observer),
        )
    if outcome.stopped_early:
        observer.note(
            f"Stopped after epoch {len(outcome.epochs)}: no better {outcome.best_metric} "
            f"for {config.early_stopping_patience} epochs."
        )
    described = describe_training(model, frozen, outcome, training_config, device)
    return described.model_copy(update={"frozen_seconds": prefix_seconds if depth else None})
