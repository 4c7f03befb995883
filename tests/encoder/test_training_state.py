import io
from pathlib import Path
from typing import Any, BinaryIO

import pytest
import torch
from torch import nn

from encoder.errors import CheckpointError, ConfigError, EncError
from encoder.optimizer import Optimizer
from encoder.training_state import STATE_FILE, EpochScores, Position, TrainingState


def parts() -> tuple[dict[str, nn.Parameter], Optimizer]:
    parameters = {"w": nn.Parameter(torch.randn(3))}
    return parameters, Optimizer([{"params": list(parameters.values()), "lr": 0.1}])


def test_everything_saved_comes_back(tmp_path: Path) -> None:
    parameters, optimizer = parts()
    parameters["w"].sum().backward()
    optimizer.step()
    position = Position(epoch=1, step=2, history=[EpochScores(1, 0.5, {"accuracy": 0.9})], best_epoch=1)
    torch.manual_seed(5)
    TrainingState(tmp_path, "run").save(position, parameters, optimizer)
    expected = torch.rand(3)
    others, fresh = parts()
    assert TrainingState(tmp_path, "run").load_(others, fresh) == position
    assert torch.equal(others["w"], parameters["w"])
    assert torch.equal(torch.rand(3), expected)
    assert fresh.state_dict()["parts"][0]["state"][0]["step"] == 1


def test_no_state_is_no_position(tmp_path: Path) -> None:
    assert TrainingState(tmp_path, "run").load_(*parts()) is None


def test_a_state_of_another_run_or_a_broken_file_is_refused(tmp_path: Path) -> None:
    TrainingState(tmp_path, "run").save(Position(), *parts())
    with pytest.raises(ConfigError, match="continues a run as it was started"):
        TrainingState(tmp_path, "other").load_(*parts())
    path = tmp_path / STATE_FILE
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(CheckpointError, match="cannot be read"):
        TrainingState(tmp_path, "run").load_(*parts())


def test_a_full_disk_is_told_and_the_state_before_stays(tmp_path: Path, monkeypatch) -> None:
    before = Position(step=1)
    TrainingState(tmp_path, "run").save(before, *parts())

    def write(value: object, file: BinaryIO) -> None:
        file.write(b"half")
        raise RuntimeError("unexpected pos 704 vs 598")  # as torch says it

    monkeypatch.setattr(torch, "save", write)
    with pytest.raises(EncError, match=rf"{STATE_FILE}: the training state cannot be written.*make room"):
        TrainingState(tmp_path, "run").save(Position(step=2), *parts())
    assert [file.name for file in tmp_path.iterdir()] == [STATE_FILE]
    assert TrainingState(tmp_path, "run").load_(*parts()) == before


def test_an_interrupt_while_the_state_is_written_is_one_and_the_state_before_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = Position(step=1)
    TrainingState(tmp_path, "run").save(before, *parts())

    class Interrupted(io.FileIO):
        """A file at whose third piece Ctrl-C is pressed."""

        pieces = 0

        def write(self, content: Any) -> int:
            self.pieces += 1
            if self.pieces == 3:
                raise KeyboardInterrupt
            return super().write(content) or 0

    monkeypatch.setattr(Path, "open", lambda path, mode: Interrupted(path, mode))
    with pytest.raises(KeyboardInterrupt):
        TrainingState(tmp_path, "run").save(Position(step=2), *parts())
    monkeypatch.undo()
    assert [file.name for file in tmp_path.iterdir()] == [STATE_FILE]
    assert TrainingState(tmp_path, "run").load_(*parts()) == before
