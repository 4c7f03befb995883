"""Where training stands, on disk: enough to continue to the same result after a kill at any moment."""

import hashlib
import json
import pickle
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from pydantic import BaseModel
from torch import nn

from encoder.errors import CheckpointError, ConfigError, EncError
from encoder.files import open_atomic
from encoder.model import Classifier
from encoder.optimizer import Optimizer
from encoder.rows import TokenizedRows
from encoder.training_config import TrainingConfig
from encoder.updates import Model

STATE_FILE = "training-state.pt"
BEST_FILE = "training-best.pt"


@dataclass
class EpochScores:
    """One finished epoch (from 1): mean training loss, validation scores if there is a validation split."""

    epoch: int
    loss: float
    validation: dict[str, float] | None


@dataclass
class Position:
    """The next update to make: ``step`` of ``epoch`` (both from 0), and what the epoch has summed so far."""

    epoch: int = 0
    step: int = 0
    rows_seen: int = 0
    loss_sum: float = 0.0
    loss_rows: int = 0  # the rows of ``loss_sum``, which is read from the device every few updates
    seconds: float = 0.0
    history: list[EpochScores] = field(default_factory=list)
    best_epoch: int = 0
    improved_epoch: int = 0  # the last whose score was above all before; an equal score later is kept instead
    best_score: float = float("-inf")


def identify(
    config: TrainingConfig,
    model: Model,
    objective: str,
    parameters: Iterable[str],
    rows: TokenizedRows,
) -> str:
    """A hash of all that decides the result: config, architecture, task, what trains, training rows.

    ``objective`` is its ``identity``, ``parameters`` are the names of those that train.
    """
    described: list[BaseModel] = [config, model.config]
    if isinstance(model, Classifier):
        described.append(model.task)
    shape = [one.model_dump(mode="json") for one in described]
    digest = hashlib.sha256(json.dumps([shape, objective, sorted(parameters)], sort_keys=True).encode())
    for array in (rows.input_ids, rows.token_type_ids, rows.offsets, rows.labels):
        digest.update(b"" if array is None else array.tobytes())
    return digest.hexdigest()


class TrainingState:
    """The two files of an unfinished training: the state after some update, and the best weights so far.

    ``identity`` names the run (config, data, model); a state of another run is refused.
    """

    def __init__(self, folder: Path, identity: str) -> None:
        self.folder = folder
        self.identity = identity

    def save(self, position: Position, parameters: dict[str, nn.Parameter], optimizer: Optimizer) -> None:
        """Write the state as it is between two updates, atomically; EncError where the disk is full."""
        state = {
            "identity": self.identity,
            "position": asdict(position),
            "parameters": {name: p.detach() for name, p in parameters.items()},
            "optimizer": optimizer.state_dict(),
            "rng": torch.get_rng_state(),
            "cuda_rng": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
        }
        _write(self.folder / STATE_FILE, state)

    def load_(self, parameters: dict[str, nn.Parameter], optimizer: Optimizer) -> Position | None:
        """Restore weights, optimizer and random state; None when no state was written yet."""
        path = self.folder / STATE_FILE
        if not path.exists():
            return None
        state = _read(path)
        if state["identity"] != self.identity:
            raise ConfigError(
                f"{path}: the interrupted run had another model, data set or options; "
                "--resume continues a run as it was started, --overwrite starts again"
            )
        _copy_(parameters, state["parameters"])
        optimizer.load_state_dict(state["optimizer"])
        torch.set_rng_state(state["rng"])
        if state["cuda_rng"] and torch.cuda.is_available():
            torch.cuda.set_rng_state_all(state["cuda_rng"])
        position = Position(**state["position"])
        position.history = [EpochScores(**scores) for scores in state["position"]["history"]]
        return position

    def save_best(self, parameters: dict[str, nn.Parameter]) -> None:
        """Keep these weights as the best so far; EncError where the disk is full."""
        _write(self.folder / BEST_FILE, {name: p.detach() for name, p in parameters.items()})

    def load_best_(self, parameters: dict[str, nn.Parameter]) -> None:
        """Put the best weights into ``parameters``."""
        _copy_(parameters, _read(self.folder / BEST_FILE))


def _write(path: Path, value: Any) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open_atomic(path) as file:
            torch.save(value, file)
    except (OSError, RuntimeError) as error:  # RuntimeError: what torch makes of a full disk
        if isinstance(error.__context__, KeyboardInterrupt):  # and of an interrupt while it writes
            raise error.__context__ from None
        raise EncError(
            f"{path}: the training state cannot be written ({error}); make room, then --resume goes on from "
            "the last one that was"
        ) from error


def _read(path: Path) -> Any:
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, RuntimeError, EOFError, pickle.UnpicklingError) as error:
        raise CheckpointError(
            f"{path}: the training state cannot be read ({error}); --overwrite starts again"
        ) from error


def _copy_(parameters: dict[str, nn.Parameter], values: dict[str, torch.Tensor]) -> None:
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(values[name])
