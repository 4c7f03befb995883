"""What a chain would do, before it does anything: `enc run --dry-run`.

Shapes follow from options, sizes from shapes, times from a trial of some seconds.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from compress.size import macs_per_token
from encoder.config import EncoderConfig
from encoder.errors import ConfigError
from encoder.model_folder import (
    is_exported,
    peek_config,
    read_config,
    read_task,
    read_tokenizer,
    resolve_model,
)
from encoder.task import Task
from recipes.chain import Chain, Step, given_options
from recipes.chain_record import find_finished, find_keys, read_record
from recipes.chain_shapes import ORDER, Certainty, Shape, reshape
from recipes.compress_config import CompressConfig
from recipes.compress_search import most_folders
from recipes.data_options import data_options
from recipes.export_config import ExportConfig
from recipes.observer import Observer, Silent
from recipes.part import Part
from recipes.result import read_result
from recipes.run import open_chain
from recipes.run_config import RunConfig

if TYPE_CHECKING:
    from encoder.data import TaskData
    from encoder.rows import TokenizedRows
    from encoder.tokenizer import Tokenizer

SPLITS = ("train", "validation", "test")
# While a model trains, its weights, the best ones so far and two moments of each are on disk.
TRAINING_BYTES = 16
# What a model can be trained in; an export has others.
PRECISIONS: tuple[Literal["fp32", "bf16"], ...] = ("fp32", "bf16")


class PlannedStep(Part):
    """A step that would be done. What it would make is ``None`` where it only measures.

    ``size``: whether ``parameters``, ``macs_per_token`` and ``bytes_on_disk`` are exact; ``about`` or
    ``uneven``: but for some bytes in which it is described what stays; see ``recipes.chain_shapes``. An
    exported graph is ``about`` known, within a thousandth or 4 kB; ``at least`` where some of it may have to
    stay in float.
    ``disk_bytes`` is the most it needs on disk while it runs, ``done`` whether it was done before.
    """

    name: str
    command: str
    folder: str
    models: tuple[str, ...]
    options: dict[str, Any]
    done: bool
    size: Certainty | Literal["at least"] | None = None
    layers: int | None = None
    parameters: int | None = None
    macs_per_token: float | None = None
    bytes_on_disk: int | None = None
    disk_bytes: int
    seconds: float


class Plan(Part):
    """A chain as it would be run; ``seconds`` and ``disk_bytes`` are of the steps that are not done yet.

    ``tokens`` is the mean of a training row, as the first step cuts it; ``macs_per_token`` is at that length.
    """

    recipe: str
    description: str
    output: str
    model: str
    data: str
    rows: dict[str, int]
    tokens: float
    steps: tuple[PlannedStep, ...]
    seconds: float
    disk_bytes: int
    trial_seconds: float

    def to_json(self) -> str:
        """What `enc run --dry-run --json` prints."""
        return self.model_dump_json(indent=2) + "\n"


def make_plan(config: RunConfig, observer: Observer | None = None) -> Plan:
    """What `enc run` with ``config`` would do.

    Raises:
        EncError: all that is wrong with the recipe, its models and data.
    """
    observer = observer or Silent()
    chain, root = open_chain(config)
    keys = find_keys(chain)
    record = None if config.force else read_record(root)
    inputs = _read(chain, observer)
    planner = _Planner(chain, inputs, observer)
    planned = []
    for step in chain.steps:
        before = None if record is None else record.find(step.folder)
        done = find_finished(root, step, before, keys[step.folder]) is not None
        planned.append(planner.plan(step, done=done))
    left = [step for step in planned if not step.done]
    return Plan(
        recipe=chain.name,
        description=chain.options.description,
        output=str(root),
        model=str(chain.options.model),
        data=str(chain.options.data),
        rows={name: len(lengths) for name, lengths in inputs.lengths.items()},
        tokens=inputs.tokens(planner.max_length),
        steps=tuple(planned),
        seconds=sum(step.seconds for step in left),
        disk_bytes=_most_disk(left),
        trial_seconds=planner.trial_seconds,
    )


def _most_disk(steps: list[PlannedStep]) -> int:
    """The most that is on disk at once: what earlier steps leave, and what the present one needs."""
    most = there = 0
    for step in steps:
        most = max(most, there + step.disk_bytes)
        there += step.bytes_on_disk or 0
    return most


@dataclass(frozen=True)
class _Inputs:
    """The model that a chain starts from, and its data: the task, and the tokens of each row by split."""

    folder: Path
    config: EncoderConfig
    tokenizer: "Tokenizer"
    data: "TaskData"
    task: Task
    lengths: Mapping[str, np.ndarray[Any, Any]]

    def tokens(self, max_length: int) -> float:
        """Mean tokens of a training row that is cut at ``max_length``."""
        lengths = self.lengths.get("train", next(iter(self.lengths.values())))
        return float(np.minimum(lengths, max_length).mean())


def _read(chain: Chain, observer: Observer) -> _Inputs:
    from encoder.data import read_data
    from encoder.token_cache import encode_cached

    model, first = str(chain.options.model), chain.steps[0]
    folder = resolve_model(model, exported=True)
    config, tokenizer = read_config(folder), read_tokenizer(folder)
    own = None if first.kind.makes(first.options) and "encoder" in first.kind.takes else read_task(folder)
    observer.stage(f"Reading {chain.options.data}")
    options = data_options(first.options, read_result(folder), rows_too=False)
    data = read_data(str(chain.options.data), options, task=own)
    if "train" not in data.splits:
        raise ConfigError(f"{chain.options.data} has no training rows; it has {', '.join(data.splits)}")
    observer.stage("Tokenizing")
    lengths = {
        name: encode_cached(tokenizer, data.texts(name), data.pairs(name), max_length=tokenizer.max_length)[
            0
        ].lengths
        for name in SPLITS
        if name in data.splits
    }
    return _Inputs(folder, config, tokenizer, data, data.task, lengths)


class _Planner:
    """Plans one step after another; the trial is made at the first that is not done."""

    def __init__(self, chain: Chain, inputs: _Inputs, observer: Observer) -> None:
        self._chain, self._inputs, self._observer = chain, inputs, observer
        self._shapes: dict[str, Shape] = {}
        self._max_lengths: dict[str, int] = {}
        self._times: Any = None
        self.trial_seconds = 0.0
        first = next((one for one in chain.steps if getattr(one.options, "max_length", None)), None)
        self.max_length: int = (
            getattr(first.options, "max_length", None) if first else None
        ) or inputs.tokenizer.max_length

    def plan(self, step: Step, *, done: bool) -> PlannedStep:
        """What ``step`` would make, need and take."""
        before = self._shape_of(step.models[0])
        after = reshape(step, before, self._shapes)
        self._shapes[step.folder] = after
        max_length = getattr(step.options, "max_length", None) or self._max_lengths.get(
            step.models[0], self._inputs.tokenizer.max_length
        )
        self._max_lengths[step.folder] = max_length
        made = {} if step.makes is None else self._size(step, after, max_length)
        return PlannedStep(
            name=step.name,
            command=step.command,
            folder=step.folder,
            models=step.models,
            options={
                name: str(value) if isinstance(value, Path) else value
                for name, value in given_options(step).items()
            },
            done=done,
            **made,
            disk_bytes=self._disk(step, made.get("bytes_on_disk", 0), after, trains=not done),
            seconds=0.0 if done else self._seconds(step, before.config, after.config, max_length),
        )

    def _shape_of(self, name: str) -> Shape:
        if name in self._shapes:
            return self._shapes[name]
        same = name == self._chain.options.model
        return Shape(self._inputs.config if same else peek_config(name, exported=True))

    def _size(self, step: Step, shape: Shape, max_length: int) -> dict[str, Any]:
        from compress.planned_size import count_parameters, folder_bytes, graph_folder_bytes
        from recipes.export_onnx import describe_export

        config, task, tokenizer = shape.config, self._inputs.task, self._inputs.tokenizer
        tokens = max(1, round(self._inputs.tokens(max_length)))
        size: Certainty | Literal["at least"] = shape.certainty
        options = step.options
        if isinstance(options, ExportConfig) and step.makes == "graph":
            export = describe_export(options, config, task, tokenizer, max_length)
            embeddings = options.quantize_embeddings
            amount = graph_folder_bytes(config, task, tokenizer, export, embeddings=embeddings)
            if size not in ("roughly", "at most"):  # of int8, parts may have to stay in float
                size = "at least" if options.precision == "int8" else max("about", size, key=ORDER.index)
        else:
            amount = folder_bytes(config, task, tokenizer)
        return {
            "size": size,
            "layers": config.num_hidden_layers,
            "parameters": count_parameters(config, task),
            "macs_per_token": macs_per_token(config, tokens, num_outputs=task.num_outputs),
            "bytes_on_disk": amount,
        }

    def _disk(self, step: Step, amount: int, shape: Shape, *, trains: bool) -> int:
        """What is on disk while the step runs, beside what it leaves."""
        from compress.planned_size import count_parameters

        learns = getattr(step.options, "num_epochs", 0) or getattr(step.options, "recover_epochs", 0)
        if isinstance(step.options, CompressConfig):
            amount *= most_folders(step.options.max_candidates) if trains else 1
            learns = step.options.max_candidates
        if not (trains and learns):
            return amount
        return amount + TRAINING_BYTES * count_parameters(shape.config, self._inputs.task)

    def _seconds(self, step: Step, before: EncoderConfig, after: EncoderConfig, max_length: int) -> float:
        from recipes.plan_context import StepContext
        from recipes.plan_time import estimate_seconds

        if self._times is None:
            started = time.perf_counter()
            self._times = self._try(step)
            self.trial_seconds = time.perf_counter() - started
        inputs = self._inputs
        rows = {name: len(lengths) for name, lengths in inputs.lengths.items()}
        rows["train"] = min(rows["train"], getattr(step.options, "train_rows", None) or rows["train"])
        context = StepContext(before, after, rows, inputs.tokens(max_length), self._times)
        return estimate_seconds(step, context)

    def _try(self, step: Step) -> Any:
        """Row times of the model that the chain starts from, on its rows as they will be cut."""
        from encoder.checkpoint import load_classifier
        from encoder.model import Classifier, initialise_
        from recipes.row_times import measure_times
        from recipes.scoring import choose_device, choose_precision

        options = self._chain.steps[0].options
        choose_device("cpu", getattr(options, "threads", None))
        self._observer.stage("Trying how long a row takes")
        asked = getattr(options, "precision", "auto")
        precision = choose_precision(asked if asked in PRECISIONS else "auto", "cpu")
        folder, task = self._inputs.folder, self._inputs.task
        # A graph has no weights to train; what they are makes no difference to how long they take.
        if is_exported(folder):
            model = Classifier(self._inputs.config, task)
            initialise_(model, model.config, 0)
        else:
            model = load_classifier(folder, task=task)
        return measure_times(
            model,
            self._tokenize("train"),
            batch_size=getattr(options, "batch_size", 32),
            precision=precision,
        )

    def _tokenize(self, split: str) -> "TokenizedRows":
        from encoder.token_cache import encode_cached

        data = self._inputs.data
        made, _ = encode_cached(
            self._inputs.tokenizer, data.texts(split), data.pairs(split), max_length=self.max_length
        )
        return replace(made, labels=data.labels(split))
