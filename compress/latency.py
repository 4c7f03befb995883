"""Latency: how long a classifier takes, in each runtime and on each device."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from compress.contention import is_disturbed
from compress.deployed import runtimes_of
from compress.machine import cpu_model, list_gpus
from compress.process import default_threads
from compress.runtimes import PRECISIONS, check_names, why_unavailable
from compress.sessions import Sessions
from compress.workload import Case, Shape, Workload
from encoder.errors import ConfigError

# Called before each case with what has been done, how much there is in all, and what comes now.
Progress = Callable[[int, int, str], object]


class Latency(BaseModel):
    """The latency of one classifier in one runtime, on one device, for one shape of inputs.

    A run is one batch of ``shape``. ``p50_ms``, ``p95_ms``, ``p99_ms`` and ``mean_ms`` are over ``runs``
    timed runs; on data's own lengths they hold the variety of the data. ``tokens_per_s`` counts no padding.
    ``noise`` is the noise floor, a fraction: how far the medians of five blocks of runs lie apart. ``steady``
    is False when the runs had not become steady by the end of the warm-up. ``cpu_wait`` is the fraction of
    the time in which its threads were ready and another process had the core, ``None`` if the
    system does not tell; see ``is_reliable``. ``peak_memory_bytes`` is the
    resident memory of the process while running, ``device_memory_bytes`` what the GPU held.
    """

    model_config = ConfigDict(frozen=True)

    runtime: str
    device: str
    device_name: str
    precision: str
    threads: int
    shape: Shape
    p50_ms: float
    p95_ms: float
    p99_ms: float
    mean_ms: float
    rows_per_s: float
    tokens_per_s: float
    runs: int
    noise: float
    warm_up_runs: int
    steady: bool
    cpu_wait: float | None = None
    peak_memory_bytes: int
    device_memory_bytes: int | None = None

    @property
    def is_reliable(self) -> bool:
        """Whether the runs were steady and other processes left the cores to them."""
        return self.steady and not is_disturbed(self.cpu_wait)


class Unavailable(BaseModel):
    """A runtime on a device that this machine does not have; ``reason`` is fit for a table cell."""

    model_config = ConfigDict(frozen=True)

    runtime: str
    device: str
    reason: str


def measure_latency(
    model_folder: Path,
    workload: Workload,
    *,
    runtimes: Sequence[str] = ("torch-fp32",),
    devices: Sequence[str] = ("cpu",),
    threads: int | None = None,
    min_runs: int = 20,
    min_seconds: float = 1.0,
    progress: Progress | None = None,
) -> list[Latency | Unavailable]:
    """Measure each runtime on each device, in a process of its own; a result for each case of ``workload``.

    An exported model is measured as it is, whatever ``runtimes`` says.

    A case is warmed up until steady, then run at least ``min_runs`` times and ``min_seconds``. ``threads``
    defaults to the physical cores this process may use. A device this machine lacks gives one ``Unavailable``
    for each runtime.

    Raises:
        ConfigError: an unknown runtime or device, fewer than 1 run or thread.
        CheckpointError: ``model_folder`` holds no classifier.
        EncError: a worker process crashed.
    """
    check_names(runtimes, devices)
    check_repeats(min_runs, min_seconds)
    threads = default_threads(threads)
    runtimes = runtimes_of(model_folder, runtimes)
    total = len(devices) * len(runtimes) * len(workload.cases)
    done = 0
    results: list[Latency | Unavailable] = []
    with Sessions(workload, threads=threads) as sessions:
        for device in devices:
            for runtime in runtimes:
                reason = why_unavailable(runtime, device)
                if reason is not None:
                    results.append(Unavailable(runtime=runtime, device=device, reason=reason))
                    done += len(workload.cases)
                    continue
                with sessions.open(runtime, model_folder, device=device) as worker:
                    for index, case in enumerate(workload.cases):
                        if progress is not None:
                            progress(done, total, f"{runtime} on {device}, {case.shape}")
                        answer = worker.ask("measure", case=index, min_runs=min_runs, min_seconds=min_seconds)
                        results.append(_latency(runtime, device, threads, case, answer))
                        done += 1
    return results


def check_repeats(min_runs: int, min_seconds: float) -> None:
    """Raise ``ConfigError`` for numbers of repeats that would measure nothing."""
    problems = []
    if min_runs < 1:
        problems.append(f"the number of timed runs is {min_runs}; expected at least 1")
    if not 0 <= min_seconds < float("inf"):
        problems.append(f"the timed seconds are {min_seconds}; expected 0 or more")
    if problems:
        raise ConfigError.from_problems(problems)


def device_name(device: str) -> str:
    """The name of the CPU or of the first GPU."""
    if device == "cpu":
        return cpu_model()
    gpus = list_gpus()
    return gpus[0].name if gpus else "no GPU on this machine"


def _latency(runtime: str, device: str, threads: int, case: Case, answer: dict[str, Any]) -> Latency:
    passes, total_s = answer.pop("passes"), answer.pop("total_s")
    return Latency(
        runtime=runtime,
        device=device,
        device_name=device_name(device),
        precision=PRECISIONS[runtime],
        threads=threads,
        shape=case.shape,
        rows_per_s=passes * case.rows / total_s,
        tokens_per_s=passes * case.tokens / total_s,
        **answer,
    )
