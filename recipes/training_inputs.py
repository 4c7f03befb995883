"""What a training starts from: a model, looked at and loaded, and data, read, checked and tokenized."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from encoder.config import EncoderConfig
from encoder.conversion import config_with_residual, with_residual
from encoder.errors import ConfigError, did_you_mean
from encoder.metrics import metric_names
from encoder.model_folder import read_config, read_tokenizer, resolve_model
from encoder.task import Task, in_words
from recipes.against import find_comparable
from recipes.data_options import data_options
from recipes.observer import Observer
from recipes.pretrain_config import PretrainConfig
from recipes.result import Parent, describe_parent, read_result
from recipes.scoring import FineTuned, Splits, choose_device, choose_precision, tokenize
from recipes.training_options import FreezingOptions, TrainingOptions

if TYPE_CHECKING:
    from encoder.data import TaskData
    from encoder.model import Classifier
    from encoder.tokenizer import Tokenizer
    from encoder.training_config import TrainingConfig


CONVERTED = (
    "Sublayers weigh what those before them made, instead of adding it up; all weights start equal, where "
    "the model is the function that it was."
)


@dataclass(frozen=True)
class StartingModel:
    """The model to start from, looked at but not loaded, and where it is to be trained."""

    source: str
    folder: Path
    config: EncoderConfig
    tokenizer: "Tokenizer"
    max_length: int
    device: str


@dataclass(frozen=True)
class TrainingInputs:
    """All that training needs, read and checked; only the weights are not loaded yet.

    ``before`` is the model that it starts from, where that is a classifier with the same labels already.
    """

    start: StartingModel
    data: "TaskData"
    parent: Parent
    before: FineTuned | None


def look_at_start(options: TrainingOptions, observer: Observer) -> StartingModel:
    """The model ``options`` name, its tokenizer and the device.

    Raises:
        ConfigError, CheckpointError: no such model or device, or texts longer than the model can read.
    """
    device = choose_device(options.device, options.threads)
    observer.stage(f"Looking at {options.model}")
    folder = resolve_model(options.model)
    config = read_config(folder)
    tokenizer = read_tokenizer(folder)
    if options.max_length is not None and options.max_length > tokenizer.max_length:
        raise ConfigError(
            f"--max-length {options.max_length}: {options.model} holds {tokenizer.max_length} tokens at most"
        )
    for note in tokenizer.notes:
        observer.note(note)
    return StartingModel(
        options.model, folder, config, tokenizer, options.max_length or tokenizer.max_length, device
    )


def read_training_data(
    options: TrainingOptions, start: StartingModel, observer: Observer, *, task: Task | None = None
) -> TrainingInputs:
    """The data that ``options`` name, checked against what is to be learnt; ``task`` where that is settled.

    Raises:
        ConfigError, DataError, CheckpointError: all that is wrong of a kind.
    """
    from encoder.data import read_data

    observer.stage(f"Reading {options.data}")
    data = read_data(options.data, data_options(options, read_result(start.folder)), task=task)
    _check_task(options, data)
    observer.data(data.report)
    return TrainingInputs(
        start,
        data,
        parent=describe_parent(options.model, start.folder),
        before=find_comparable(options.model, start.folder, data.task),
    )


def _check_task(options: TrainingOptions, data: "TaskData") -> None:
    if "train" not in data.splits:
        raise ConfigError(f"{options.data} has no training rows; it has {', '.join(data.splits)}")
    if options.best_metric is not None:
        check_best_metric(options.best_metric, data.task)


def check_best_metric(metric: str, task: Task) -> None:
    """Refuse a score that is none of those of ``task``.

    Raises:
        ConfigError: with those that there are.
    """
    names = metric_names(task.kind)
    if metric not in names:
        raise ConfigError(
            f"--best-metric {metric}: a {in_words(task.kind)} task has {', '.join(names)}"
            f"{did_you_mean(metric, names)}"
        )


def converted(options: FreezingOptions | PretrainConfig, shape: EncoderConfig) -> EncoderConfig:
    """The shape that is trained, of an encoder of this ``shape``: with the residual that is asked for.

    Raises:
        ConfigError: it cannot be converted to that.
    """
    if options.residual is None:
        return shape
    where = options.model or f"the encoder of {getattr(options, 'config', None)}"
    return config_with_residual(shape, options.residual, options.residual_block_size, where)


def load_start(inputs: TrainingInputs, seed: int, observer: Observer) -> "Classifier":
    """The model with a classifier for the task of the data, in the shape that is trained; says what of it
    is new."""
    from encoder.checkpoint import load_classifier

    observer.stage(f"Loading {inputs.start.source}")
    model = load_classifier(inputs.start.folder, task=inputs.data.task, seed=seed)
    if model.new_parameters:
        count = sum(p.numel() for name, p in model.named_parameters() if name in model.new_parameters)
        observer.note(f"New, from random numbers: {count:,} parameters of the classifier.")
    if model.config.residual == inputs.start.config.residual:
        return model
    observer.note(CONVERTED)
    return with_residual(model, inputs.start.config)


def tokenize_all(inputs: TrainingInputs, observer: Observer) -> Splits:
    """All splits as rows."""
    names = [name for name in ("train", "validation", "test") if name in inputs.data.splits]
    start = inputs.start
    return tokenize(inputs.data, start.tokenizer, max_length=start.max_length, names=names, observer=observer)


def make_training_config(
    options: TrainingOptions, start: StartingModel, seed: int | None = None
) -> "TrainingConfig":
    """What ``options`` say of training, with what they leave open decided for model and machine."""
    from encoder.optimizer import usual_learning_rate
    from encoder.training_config import TrainingConfig

    given = {name: getattr(options, name) for name in TrainingConfig.model_fields}
    decided = {
        "precision": choose_precision(options.precision, start.device),
        "learning_rate": options.learning_rate or usual_learning_rate(start.config.hidden_size),
        "seed": options.seed if seed is None else seed,
    }
    return TrainingConfig(**given | decided)
