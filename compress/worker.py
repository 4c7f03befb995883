"""The process that runs one classifier in one runtime and times it.

It reads requests from stdin and answers on stdout, one JSON object a line, until stdin ends. What libraries
print goes to stderr. Requests, by ``"do"``:

- ``open``: runtime, model, device, threads, workload (.npz). Answers ``{"libraries"}``, those of
  RUNTIME_LIBRARIES that are in the process.
- ``write_graph``: runtime, model, target. Writes the ONNX graph that a runtime opens. Answers ``{}``.
- ``measure``: case, min_runs, min_seconds. Answers a ``Timing`` with ``cpu_wait``, ``peak_memory_bytes`` and
  ``total_s``, the sum of all timed runs.
- ``warm_up``: case, max_seconds. Answers ``{"runs", "steady"}``; peak memory counts from here.
- ``passes``: case, min_runs, min_seconds. Answers ``{"durations_s": [[…] a pass], "cpu_wait"}``, after a run
  that is not counted: another process may have had the caches.
- ``memory``: Answers ``{"peak_memory_bytes", "device_memory_bytes"}``.
- ``profile``: case, min_runs, min_seconds. Answers ``PartTimes``.
- ``logits``: case. Answers ``{"logits": [[[…] a row] a batch]}``.

An error of the user's doing is answered ``{"error": …, "kind": "CheckpointError"}``; anything else is a crash
with its traceback on stderr.
"""

import json
import os
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from compress.contention import core_time, waiting_share
from compress.memory import peak_memory_bytes, reset_peak_memory
from compress.runtimes import Runtime, open_runtime, write_graph
from compress.stopwatch import time_parts
from compress.timing import summarize, time_passes, warm_up
from compress.workload import Workload
from encoder.errors import EncError

Answer = dict[str, Any]

RUNTIME_LIBRARIES = ("torch", "onnxruntime")


class Worker:
    """One open runtime and its inputs."""

    def __init__(self) -> None:
        self._runtime: Runtime | None = None
        self._workload = Workload(())
        self._prepared: dict[int, list[Any]] = {}

    def open(self, runtime: str, model: str, device: str, threads: int, workload: str) -> Answer:
        """Load everything, in place of what was open before; nothing is run yet."""
        self._prepared = {}
        self._workload = Workload.load(Path(workload))
        self._runtime = open_runtime(runtime, Path(model), device=device, threads=threads)
        return {"libraries": [name for name in RUNTIME_LIBRARIES if name in sys.modules]}

    def write_graph(self, runtime: str, model: str, target: str) -> Answer:
        """Make the graph of a model folder."""
        write_graph(runtime, Path(model), Path(target))
        return {}

    def measure(self, case: int, min_runs: int, min_seconds: float) -> Answer:
        """Warm up and time a case."""
        runtime, run, inputs = self._case(case)
        self._reset_peaks(runtime)
        warm = warm_up(run, inputs, synchronize=runtime.synchronize)
        before = core_time()
        durations = time_passes(
            run, inputs, min_runs=min_runs, min_seconds=min_seconds, synchronize=runtime.synchronize
        )
        return {
            "cpu_wait": waiting_share(before, core_time()),
            **summarize(durations, warm).model_dump(),
            "total_s": float(durations.sum()),
            "passes": len(durations),
            **self.memory(),
        }

    def warm_up(self, case: int, max_seconds: float) -> Answer:
        """Warm up a case; the timing comes in later requests."""
        runtime, run, inputs = self._case(case)
        self._reset_peaks(runtime)
        return asdict(warm_up(run, inputs, max_seconds=max_seconds, synchronize=runtime.synchronize))

    def passes(self, case: int, min_runs: int, min_seconds: float) -> Answer:
        """Time some passes of a case that is warm."""
        runtime, run, inputs = self._case(case)
        run(0)
        before = core_time()
        durations = time_passes(
            run,
            inputs,
            min_runs=min_runs,
            min_seconds=min_seconds,
            min_passes=1,
            synchronize=runtime.synchronize,
        )
        return {"durations_s": durations.tolist(), "cpu_wait": waiting_share(before, core_time())}

    def memory(self) -> Answer:
        """The peaks since the last warm-up began."""
        device_memory = None if self._runtime is None else self._runtime.device_memory_bytes()
        return {"peak_memory_bytes": peak_memory_bytes(), "device_memory_bytes": device_memory}

    def _reset_peaks(self, runtime: Runtime) -> None:
        reset_peak_memory()
        runtime.reset_device_memory()

    def profile(self, case: int, min_runs: int, min_seconds: float) -> Answer:
        """Time each sublayer."""
        runtime, run, inputs = self._case(case)
        times = time_parts(
            runtime.model,
            run,
            inputs,
            min_runs=min_runs,
            min_seconds=min_seconds,
            synchronize=runtime.synchronize,
        )
        return asdict(times)

    def logits(self, case: int) -> Answer:
        """What the runtime computes for each batch of a case, which is not kept: there may be many."""
        runtime = self._open_runtime()
        outputs = (runtime.run(runtime.prepare(batch)) for batch in self._workload.cases[case].batches)
        return {"logits": [runtime.to_numpy(output).tolist() for output in outputs]}

    def _case(self, case: int) -> tuple[Runtime, Callable[[int], Any], int]:
        runtime = self._open_runtime()
        if case not in self._prepared:
            batches = self._workload.cases[case].batches
            self._prepared[case] = [runtime.prepare(batch) for batch in batches]
        prepared = self._prepared[case]
        return runtime, lambda index: runtime.run(prepared[index]), len(prepared)

    def _open_runtime(self) -> Runtime:
        if self._runtime is None:
            raise RuntimeError("a request came before open")
        return self._runtime


def main() -> None:
    """Answer requests until stdin ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # a library that prints must not be taken for an answer
    worker = Worker()
    actions: dict[str, Callable[..., Answer]] = {
        "open": worker.open,
        "write_graph": worker.write_graph,
        "measure": worker.measure,
        "warm_up": worker.warm_up,
        "passes": worker.passes,
        "memory": worker.memory,
        "profile": worker.profile,
        "logits": worker.logits,
    }
    for line in sys.stdin:
        request = json.loads(line)
        action = actions[request.pop("do")]
        try:
            answer = action(**request)
        except EncError as error:
            answer = {"error": str(error), "kind": type(error).__name__}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
