from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compress import comparison
from compress.comparison import (
    ROUNDS,
    Comparison,
    Contestant,
    changing_orders,
    compare_latency,
    compared_pairs,
)
from compress.latency import Latency, Unavailable
from compress.workload import from_grid, from_rows
from encoder.errors import CheckpointError, ConfigError
from encoder.rows import TokenizedRows

GRID = from_grid([1, 4], [8], vocab_size=50, max_tokens=40)


class FakeWorker:
    """A process of a model that needs a known time; ``seconds`` by model and runtime."""

    seconds: dict[tuple[str, str], float]
    log: list[tuple[str, str]]
    open_now = 0

    def __init__(self, runtime: str, model: str) -> None:
        self.key = (model, runtime)

    def __enter__(self) -> "FakeWorker":
        FakeWorker.open_now += 1
        return self

    def __exit__(self, *_: object) -> None:
        FakeWorker.open_now -= 1

    def receive(self) -> dict[str, Any]:
        return {"libraries": ["torch"]}

    def ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        if do == "warm_up":
            return {"runs": 7, "steady": True}
        if do == "memory":
            return {"peak_memory_bytes": 5, "device_memory_bytes": None}
        self.log.append(self.key)
        durations = np.full((arguments["min_runs"], 1), self.seconds[self.key])
        return {"durations_s": durations.tolist(), "cpu_wait": 0.25}


class FakeSessions:
    def __init__(self, workload: object, *, threads: int) -> None:
        pass

    def __enter__(self) -> "FakeSessions":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def begin(self, runtime: str, model: Path, *, device: str) -> FakeWorker:
        return FakeWorker(runtime, str(model))


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> type[FakeWorker]:
    monkeypatch.setattr(comparison, "Sessions", FakeSessions)
    FakeWorker.log = []
    FakeWorker.seconds = {
        ("a", "torch-fp32"): 0.8,
        ("b", "torch-fp32"): 0.4,
        ("a", "onnx-int8"): 0.2,
        ("b", "onnx-int8"): 0.05,
    }
    return FakeWorker


def test_ratios_are_to_the_first_model_overall_and_in_the_same_runtime(fake: type[FakeWorker]) -> None:
    result = compare_latency([Path("a"), Path("b")], GRID, runtimes=["torch-fp32", "onnx-int8"], launches=3)
    ratios = {
        (str(one.contestant), str(one.baseline)): round(one.speedup.ratio, 9)
        for one in result.compared
        if one.shape.batch_size == 1
    }
    assert ratios == {
        ("a, onnx-int8 on cpu", "a, torch-fp32 on cpu"): 4,
        ("b, torch-fp32 on cpu", "a, torch-fp32 on cpu"): 2,
        ("b, onnx-int8 on cpu", "a, torch-fp32 on cpu"): 16,
        ("b, onnx-int8 on cpu", "a, onnx-int8 on cpu"): 4,
    }


@pytest.mark.parametrize("rounds_a_launch", [1, ROUNDS])
def test_models_take_turns_in_every_round_and_not_always_in_one_order(
    fake: type[FakeWorker], rounds_a_launch: int
) -> None:
    launches = 4
    compare_latency([Path("a"), Path("b")], GRID, launches=launches, rounds=rounds_a_launch)
    rounds = [tuple(fake.log[start : start + 2]) for start in range(0, len(fake.log), 2)]
    assert len(rounds) == launches * rounds_a_launch * len(GRID.cases)
    assert all(len(set(turns)) == 2 for turns in rounds)
    assert len(set(rounds)) == 2


def test_orders_come_with_their_mirror_image_so_that_no_place_is_an_advantage() -> None:
    orders = list(islice(changing_orders([3, 5, 8], seed=[0]), 40))
    places = np.array([[order.index(item) for item in (3, 5, 8)] for order in orders])
    assert places.mean(axis=0).tolist() == [1, 1, 1]
    assert len({tuple(order) for order in orders}) == 6


def test_all_turns_together_are_at_least_the_runs_asked_for(fake: type[FakeWorker]) -> None:
    result = compare_latency([Path("a"), Path("b")], GRID, launches=2, min_runs=100)
    for one in result.measured:
        assert isinstance(one.latency, Latency)
        assert one.latency.runs >= 100
        assert one.latency.warm_up_runs == 14
        assert one.latency.cpu_wait == 0.25


def test_no_process_is_left_open_after_an_error(
    fake: type[FakeWorker], monkeypatch: pytest.MonkeyPatch
) -> None:
    del fake.seconds["b", "torch-fp32"]
    with pytest.raises(KeyError):
        compare_latency([Path("a"), Path("b")], GRID)
    assert fake.open_now == 0


def test_a_device_that_is_missing_leaves_the_others_measured(
    fake: type[FakeWorker], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("compress.runtimes.list_gpus", tuple)
    result = compare_latency([Path("a"), Path("b")], GRID, devices=["cuda", "cpu"])
    missing = [one for one in result.measured if isinstance(one.latency, Unavailable)]
    assert [str(one.contestant) for one in missing] == ["a, torch-fp32 on cuda", "b, torch-fp32 on cuda"]
    assert {one.contestant.device for one in result.compared} == {"cpu"}
    assert Comparison.model_validate_json(result.model_dump_json()) == result


def test_the_same_model_twice_is_compared_with_itself() -> None:
    one = Contestant(model="a", runtime="torch-fp32", device="cpu")
    assert compared_pairs([one, one]) == [(1, 0)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"launches": 1}, "launches is 1; an interval needs at least 2"),
        ({"models": []}, "no model to measure"),
        ({"runtimes": ["onnx"]}, "unknown runtime 'onnx'"),
        ({"min_runs": 0}, "timed runs is 0"),
    ],
)
def test_what_cannot_be_compared_is_refused(options: dict[str, Any], message: str) -> None:
    arguments = {"models": [Path("a")], "workload": GRID} | options
    with pytest.raises(ConfigError, match=message):
        compare_latency(**arguments)


def test_a_real_model_is_compared_with_itself(
    tiny_folder: Path, rows_of: Callable[..., TokenizedRows]
) -> None:
    seen: list[tuple[int, int]] = []
    result = compare_latency(
        [tiny_folder, tiny_folder],
        from_rows(rows_of([3, 9, 5, 7]), batch_sizes=[1, 2]),
        runtimes=["onnx-fp32"],
        threads=1,
        min_runs=1,
        min_seconds=0.01,
        launches=2,
        progress=lambda done, total, _: seen.append((done, total)),
    )
    assert seen == [(done, 8) for done in range(8)]
    assert [one.latency.shape.batch_size for one in result.measured] == [1, 2, 1, 2]
    for one in result.compared:
        assert 0 < one.speedup.low <= one.speedup.ratio <= one.speedup.high


def test_a_folder_that_is_no_model_is_a_checkpoint_error(tmp_path: Path, tiny_folder: Path) -> None:
    with pytest.raises(CheckpointError, match="not a model folder"):
        compare_latency([tmp_path], GRID, runtimes=["onnx-fp32"], threads=1)
