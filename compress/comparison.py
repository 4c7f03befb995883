"""Several models side by side: measured in turns, compared as ratios with an interval."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from compress.deployed import runtimes_of
from compress.latency import Latency, Progress, Unavailable, check_repeats, device_name
from compress.paired import MIN_LAUNCHES, Speedup, log_duration, paired_speedup
from compress.process import WorkerProcess, default_threads
from compress.runtimes import PRECISIONS, check_names, why_unavailable
from compress.sessions import Sessions
from compress.timing import WarmUp, summarize
from compress.workload import Case, Shape, Workload
from encoder.errors import ConfigError

# A launch's value is the median of so many rounds, so that one disturbed round does not decide it.
ROUNDS = 3
WARM_UP_SECONDS = 2.0


class Contestant(BaseModel):
    """A model in a runtime on a device; ``model`` is the folder as it was given."""

    model_config = ConfigDict(frozen=True)

    model: str
    runtime: str
    device: str

    def __str__(self) -> str:
        return f"{self.model}, {self.runtime} on {self.device}"


class Measured(BaseModel):
    """The latency of one contestant for one shape, all its launches together; or why there is none."""

    model_config = ConfigDict(frozen=True)

    contestant: Contestant
    latency: Latency | Unavailable


class Compared(BaseModel):
    """How much faster ``contestant`` is than ``baseline`` for one shape of inputs."""

    model_config = ConfigDict(frozen=True)

    contestant: Contestant
    baseline: Contestant
    shape: Shape
    speedup: Speedup


class Comparison(BaseModel):
    """All latencies, and the ratios.

    A contestant is compared with the first one of its device (the first model in the first runtime), and, if
    that is another one, with the first model in its own runtime.
    """

    model_config = ConfigDict(frozen=True)

    measured: tuple[Measured, ...]
    compared: tuple[Compared, ...]


def compare_latency(
    models: Sequence[Path],
    workload: Workload,
    *,
    runtimes: Sequence[str] = ("torch-fp32",),
    devices: Sequence[str] = ("cpu",),
    threads: int | None = None,
    min_runs: int = 20,
    min_seconds: float = 3.0,
    launches: int = 6,
    rounds: int = ROUNDS,
    warm_up_seconds: float = WARM_UP_SECONDS,
    seed: int = 0,
    progress: Progress | None = None,
) -> Comparison:
    """Measure all ``models`` in all ``runtimes`` in turns; an exported one as it is, once.

    In each of ``launches`` launches every contestant gets a process of its own; all stay open while they take
    turns, in an order that changes from round to round, and only one works at a time. A launch has ``rounds``
    rounds for each case, after warming up for at most ``warm_up_seconds``. In all, a contestant is run at
    least ``min_runs`` times and ``min_seconds`` for each case. The same model twice gives a ratio about 1.

    Raises:
        ConfigError: an unknown runtime or device, no model, fewer than 2 launches, fewer than 1 run or
        thread. CheckpointError: a folder holds no classifier. EncError: a worker process crashed.
    """
    check_names(runtimes, devices)
    check_repeats(min_runs, min_seconds)
    if launches < MIN_LAUNCHES:
        raise ConfigError(f"launches is {launches}; an interval needs at least {MIN_LAUNCHES}")
    if not models:
        raise ConfigError("no model to measure")
    contestants = [
        Contestant(model=str(model), runtime=runtime, device=device)
        for device in devices
        for model in models
        for runtime in runtimes_of(model, runtimes)
    ]
    reasons = [why_unavailable(one.runtime, one.device) for one in contestants]
    record = _Record(contestants, reasons, workload.cases, default_threads(threads))
    blocks = launches * rounds
    pace = _Pace(rounds, warm_up_seconds, -(-min_runs // blocks), min_seconds / blocks)
    starts, turns = (changing_orders(record.present, seed=[seed, kind]) for kind in (0, 1))
    with Sessions(workload, threads=record.threads) as sessions:
        for launch in range(launches):
            _measure_launch(record, sessions, pace, (starts, turns), (launch, launches), progress)
    return Comparison(measured=tuple(record.measured()), compared=tuple(record.compared()))


def _measure_launch(
    record: "_Record",
    sessions: Sessions,
    pace: "_Pace",
    orders: tuple[Iterator[list[int]], Iterator[list[int]]],
    launch: tuple[int, int],
    progress: Progress | None,
) -> None:
    """One launch, ``launch`` being its number and how many there are: all processes, cases and rounds.

    ``orders`` are those in which processes are started and in which they take turns.
    """
    (starts, turns), (number, launches) = orders, launch
    with ExitStack() as stack:
        workers: dict[int, WorkerProcess] = {}
        for index in next(starts):
            one = record.contestants[index]
            worker = sessions.begin(one.runtime, Path(one.model), device=one.device)
            workers[index] = stack.enter_context(worker)
        for worker in workers.values():  # all load at the same time; nothing is timed yet
            worker.receive()
        for case, inputs in enumerate(record.cases):
            for step, (index, worker) in enumerate(workers.items()):
                if progress is not None:
                    done = (number * len(record.cases) + case) * len(workers) + step
                    what = f"launch {number + 1} of {launches}: {record.contestants[index]}, {inputs.shape}"
                    progress(done, launches * len(record.cases) * len(workers), what)
                warm = worker.ask("warm_up", case=case, max_seconds=pace.warm_up_seconds)
                record.warm[index, case].append(WarmUp(**warm))
            for _ in range(pace.rounds):
                for index in next(turns):
                    answer = workers[index].ask(
                        "passes", case=case, min_runs=pace.min_runs, min_seconds=pace.min_seconds
                    )
                    record.add(index, case, number, answer)
            for index, worker in workers.items():
                record.memory[index, case].append(worker.ask("memory"))


@dataclass(frozen=True)
class _Pace:
    """How long a launch takes: turns for each case, and at most how much warming up, at least what a turn."""

    rounds: int
    warm_up_seconds: float
    min_runs: int
    min_seconds: float


def changing_orders(items: Sequence[int], *, seed: Sequence[int]) -> Iterator[list[int]]:
    """Orders of ``items`` without end: one by chance, the same backwards, the next by chance …

    The first process to be started, or to have its turn, is a little slower or faster than the last; in two
    orders that mirror each other this falls on all alike.
    """
    random = np.random.default_rng(list(seed))
    while True:
        order: list[int] = random.permutation(items).tolist()
        yield order
        yield order[::-1]


@dataclass
class _Record:
    """What was measured: by contestant and case, both as indices.

    ``reasons`` say of each contestant why it cannot run here; ``None`` if it can.
    """

    contestants: Sequence[Contestant]
    reasons: Sequence[str | None]
    cases: tuple[Case, ...]
    threads: int
    warm: dict[tuple[int, int], list[WarmUp]] = field(default_factory=lambda: defaultdict(list))
    memory: dict[tuple[int, int], list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))
    cpu_wait: dict[tuple[int, int], list[float]] = field(default_factory=lambda: defaultdict(list))
    durations: dict[tuple[int, int], list[NDArray[np.float64]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    levels: dict[tuple[int, int], dict[int, list[float]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(list))
    )

    @property
    def present(self) -> list[int]:
        """The contestants that can run here."""
        return [index for index, reason in enumerate(self.reasons) if reason is None]

    def add(self, index: int, case: int, launch: int, answer: dict[str, Any]) -> None:
        """One turn, as a worker answers ``passes``."""
        durations = np.array(answer["durations_s"])  # [passes, inputs]
        if answer["cpu_wait"] is not None:
            self.cpu_wait[index, case].append(answer["cpu_wait"])
        self.durations[index, case].append(durations)
        self.levels[index, case][launch].append(log_duration(durations))

    def latency(self, index: int, case: int) -> Latency:
        """All turns of all launches together."""
        one, inputs = self.contestants[index], self.cases[case]
        durations = np.concatenate(self.durations[index, case])
        warm = self.warm[index, case]
        timing = summarize(durations, WarmUp(sum(w.runs for w in warm), all(w.steady for w in warm)))
        waits = self.cpu_wait[index, case]
        device_memory = [answer["device_memory_bytes"] for answer in self.memory[index, case]]
        return Latency(
            runtime=one.runtime,
            device=one.device,
            device_name=device_name(one.device),
            precision=PRECISIONS[one.runtime],
            threads=self.threads,
            shape=inputs.shape,
            rows_per_s=len(durations) * inputs.rows / float(durations.sum()),
            tokens_per_s=len(durations) * inputs.tokens / float(durations.sum()),
            cpu_wait=float(np.mean(waits)) if waits else None,
            peak_memory_bytes=max(answer["peak_memory_bytes"] for answer in self.memory[index, case]),
            device_memory_bytes=max((size for size in device_memory if size is not None), default=None),
            **timing.model_dump(),
        )

    def measured(self) -> Iterator[Measured]:
        """A latency for each contestant and case; of one that cannot run here, the reason."""
        for index, (one, reason) in enumerate(zip(self.contestants, self.reasons, strict=True)):
            if reason is not None:
                missing = Unavailable(runtime=one.runtime, device=one.device, reason=reason)
                yield Measured(contestant=one, latency=missing)
            else:
                for case in range(len(self.cases)):
                    yield Measured(contestant=one, latency=self.latency(index, case))

    def compared(self) -> Iterator[Compared]:
        """The ratios of ``Comparison``."""
        for index, baseline in compared_pairs([self.contestants[index] for index in self.present]):
            for case, inputs in enumerate(self.cases):
                before, after = (
                    list(self.levels[self.present[one], case].values()) for one in (baseline, index)
                )
                yield Compared(
                    contestant=self.contestants[self.present[index]],
                    baseline=self.contestants[self.present[baseline]],
                    shape=inputs.shape,
                    speedup=paired_speedup(before, after),
                )


def compared_pairs(contestants: Sequence[Contestant]) -> list[tuple[int, int]]:
    """Which of ``contestants`` are compared with which baselines, both as indices; see ``Comparison``."""
    pairs = []
    for index, one in enumerate(contestants):
        same_device = [i for i, other in enumerate(contestants) if other.device == one.device]
        same_runtime = [i for i in same_device if contestants[i].runtime == one.runtime]
        baselines = dict.fromkeys((same_device[0], same_runtime[0]))
        pairs += [(index, baseline) for baseline in baselines if baseline != index]
    return pairs
