"""How a latency table comes about: graphs of layers alike, written, run in a process of their own, timed.

The graphs have random weights and a small vocabulary, because neither changes how long they take.
"""

import hashlib
import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from compress.contention import is_disturbed
from compress.latency_table import LatencyTable, LayerTimes, solve_times
from compress.machine import cpu_flags, cpu_model, library_versions
from compress.process import WorkerProcess
from compress.sessions import Sessions
from compress.size import macs_per_row
from compress.workload import Workload, from_grid
from encoder.cache_folder import cache_folder
from encoder.config import EncoderConfig
from encoder.files import write_atomic
from encoder.task import Task

if TYPE_CHECKING:
    from compress.onnx_graph import GraphForm
    from encoder.model import Classifier

PRECISIONS = ("fp32", "int8")
# The form of graphs; portable where a model has no other.
FORM: Literal["fused"] = "fused"
# The shares of heads and neurons that are measured; between them times lie on a straight line.
SHARES = (1 / 3, 2 / 3)
# Words of the small vocabulary, and rows of them that ranges of activations are found on.
WORDS, CALIBRATION_ROWS = 64, 4
# Each model is timed twice, with others between: another process can only make it slower.
VISITS = 2
RUNS, SECONDS, WARM_UP_SECONDS = 20, 0.25, 0.5
# As often runs are repeated while others are in the way.
MOST_TRIES = 4
VERSION = 1

Point = tuple[int, int, int]  # layers, heads, neurons
OnDone = Callable[[int, int], object]


def find_table(
    config: EncoderConfig, *, tokens: int, threads: int, on_done: OnDone = lambda done, total: None
) -> LatencyTable:
    """The table for models with layers as ``config`` has them and rows of ``tokens`` tokens, on this machine.

    Measured, or what was found before of the same shape on the same machine; it is kept, if nothing was in
    the way, beside the tokenized texts (``ENC_CACHE``).

    Raises:
        ExportError: no graph of such layers can be written.
    """
    if known := known_table(config, tokens=tokens, threads=threads):
        return known
    table = measure_table(config, tokens=tokens, threads=threads, on_done=on_done)
    file = _file(config, tokens, threads)
    if file is not None and table.reliable:
        with suppress(OSError):  # a folder of somebody else's is no reason to stop
            file.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(file, table.model_dump_json())
    return table


def known_table(config: EncoderConfig, *, tokens: int, threads: int) -> LatencyTable | None:
    """What ``find_table`` found before and kept; ``None`` where it would have to measure."""
    file = _file(config, tokens, threads)
    if file is not None:
        with suppress(OSError, ValidationError):
            return LatencyTable.model_validate_json(file.read_bytes())
    return None


def count_graphs(config: EncoderConfig) -> int:
    """Graphs that are written for the table of models with layers as ``config`` has them."""
    return len(PRECISIONS) * len(_Probe.of(config, 1).points())


def count_timings(config: EncoderConfig) -> int:
    """How often one of them is timed."""
    return VISITS * count_graphs(config)


def timing_seconds(run_s: float, *, busy: bool = False) -> float:
    """How long one timing takes, a run being ``run_s`` seconds; ``busy``: others have the cores."""
    return WARM_UP_SECONDS + (MOST_TRIES if busy else 1) * max(SECONDS, RUNS * run_s)


def measure_table(
    config: EncoderConfig, *, tokens: int, threads: int, on_done: OnDone = lambda done, total: None
) -> LatencyTable:
    """As ``find_table``, measured now."""
    probe = _Probe.of(config, tokens)
    measured: dict[str, dict[Point, float]] = {precision: {} for precision in PRECISIONS}
    waits: list[float] = []
    with (
        tempfile.TemporaryDirectory(prefix="enc-") as name,
        WorkerProcess("layers", threads=threads) as worker,
    ):
        folder = Path(name)
        workload = folder / "workload.npz"
        probe.workload().save(workload)
        total = (1 + VISITS) * count_graphs(config)
        graphs = []
        on_done(0, total)
        for graph in _write_graphs(probe, folder, threads):
            graphs.append(graph)
            on_done(len(graphs), total)
        for visit in range(VISITS):
            for place, (precision, point, path) in enumerate(graphs[:: 1 if visit % 2 == 0 else -1]):
                worker.ask(
                    "open", runtime=f"onnx-{precision}", model=str(path), device="cpu", threads=threads,
                    workload=str(workload),
                )  # fmt: skip
                ms, wait = _time(worker)
                known = measured[precision]
                known[point] = min(ms, known.get(point, ms))
                waits += [] if wait is None else [wait]
                on_done((1 + visit) * len(graphs) + place + 1, total)
    return LatencyTable(
        tokens=tokens,
        threads=threads,
        device_name=cpu_model(),
        form=probe.form,
        depth=probe.depth,
        times={precision: probe.solve(times) for precision, times in measured.items()},
        reliable=not is_disturbed(float(np.mean(waits)) if waits else None),
    )


def measure_undisturbed(model: Path, runtime: str, workload: Workload, *, threads: int) -> float:
    """The p50 of ``model`` in ``runtime`` on the first case of ``workload``, in ms, as a table has it.

    It is shorter than a p50 of all runs, and no measure of what somebody waits for.
    """
    found = []
    with Sessions(workload, threads=threads) as sessions:
        for _ in range(VISITS):
            with sessions.open(runtime, model, device="cpu") as worker:
                found.append(_time(worker)[0])
    return min(found)


def _time(worker: WorkerProcess) -> tuple[float, float | None]:
    """The p50 of what is open over its inputs, in ms; and for how much of the time others had its core."""
    worker.ask("warm_up", case=0, max_seconds=WARM_UP_SECONDS)
    found, wait = np.inf, None
    for _ in range(MOST_TRIES):
        answer = worker.ask("passes", case=0, min_runs=RUNS, min_seconds=SECONDS)
        wait = answer["cpu_wait"]
        found = min(found, undisturbed_p50(np.array(answer["durations_s"]), wait) * 1e3)
        if not is_disturbed(wait):
            break
    return found, wait


def undisturbed_p50(durations: NDArray[np.float64], wait: float | None) -> float:
    """The p50 over inputs of ``durations`` [passes, inputs], as it would be if nothing else ran.

    Of each input its shortest run: what another process does to a run can only make it longer. Where others
    had the core for the share ``wait`` of the time, no long run may be free of that; then the mean of all
    runs, less that share, is nearer the truth, and shortens all inputs alike. It has to be the mean of all:
    what a few short runs waited for is no part of the others. With one thread it is exact but for what a lost
    cache costs.
    """
    shortest = durations.min(0)  # [inputs]
    p50 = float(np.median(shortest))
    if wait is None or not is_disturbed(wait):
        return p50
    return p50 * min(1.0, float(durations.mean()) * (1 - wait) / float(shortest.mean()))


@dataclass(frozen=True)
class _Probe:
    """The graphs to time: layers with ``H`` heads and ``F`` neurons and fewer, ``depth`` of them or one."""

    config: EncoderConfig
    tokens: int
    H: int
    F: int
    depth: int

    @classmethod
    def of(cls, config: EncoderConfig, tokens: int) -> "_Probe":
        """Half as deep as ``config``: models of a third of its layers to all of them are to be predicted."""
        return cls(
            config.model_copy(update={"vocab_size": max(WORDS, config.pad_token_id + 1)}),
            tokens,
            max(1, *(shape.num_attention_heads for shape in config.layers)),
            max(1, *(shape.intermediate_size for shape in config.layers)),
            max(2, -(-config.num_hidden_layers // 2)),
        )

    @property
    def form(self) -> "GraphForm":
        """That of the graphs."""
        from compress.onnx_graph import possible_form

        return possible_form(self.config, FORM)

    def points(self) -> list[Point]:
        """What ``solve_times`` asks for."""
        heads, neurons = (
            sorted({0, *(round(share * most) for share in SHARES)} - {most}) for most in (self.H, self.F)
        )
        return [
            (1, 0, 0),
            (1, self.H, self.F),
            (self.depth, self.H, self.F),
            *((self.depth, number, self.F) for number in heads),
            *((self.depth, self.H, number) for number in neurons),
        ]

    def shape(self, point: Point) -> EncoderConfig:
        """The config of a model with layers alike: as the last one, for ModernBERT's first lacks a norm."""
        layers, heads, neurons = point
        shape = self.config.layers[-1].model_copy(
            update={"heads": tuple(range(heads)), "intermediate_size": neurons}
        )
        return self.config.model_copy(update={"layers": (shape,) * layers})

    def workload(self) -> Workload:
        """One row."""
        return from_grid([1], [self.tokens], vocab_size=WORDS, max_tokens=self.config.max_tokens)

    def solve(self, measured: dict[Point, float]) -> LayerTimes:
        """See ``solve_times``; a last layer's time is divided as its arithmetic is."""
        parts = macs_per_row(self.shape((1, self.H, self.F)), self.tokens, num_outputs=1)
        attention = parts["projections"] + parts["scores and mixing"]
        share = attention / (attention + parts["feed-forward"])
        return solve_times(measured, last_share=share, depth=self.depth)


def _write_graphs(probe: _Probe, folder: Path, threads: int) -> Iterator[tuple[str, Point, Path]]:
    """The graphs of all points in all precisions: precision, point and file."""
    from compress.onnx_graph import build_graph, save_graph
    from compress.quantization import quantize_static

    lengths = [probe.tokens] * CALIBRATION_ROWS
    (case,) = from_grid(
        [len(lengths)], [probe.tokens], vocab_size=WORDS, max_tokens=probe.config.max_tokens
    ).cases
    for number, point in enumerate(probe.points()):
        graph = build_graph(_draw(probe.shape(point)), form=probe.form)
        int8 = quantize_static(graph, case.batches[0], embeddings=True, threads=threads)
        for precision, proto in zip(PRECISIONS, (graph, int8), strict=True):
            path = folder / f"{number}-{precision}.onnx"
            save_graph(proto, path)
            yield precision, point, path


def _draw(config: EncoderConfig) -> "Classifier":
    from encoder.model import Classifier, initialise_

    model = Classifier(config, Task(kind="single_label", labels=("0", "1")))
    initialise_(model, config, 0)
    return model.eval()


def _file(config: EncoderConfig, tokens: int, threads: int) -> Path | None:
    """Where the table is kept; ``None`` where nothing is."""
    folder = cache_folder("latency")
    return None if folder is None else folder / f"{_key(config, tokens, threads)}.json"


def _key(config: EncoderConfig, tokens: int, threads: int) -> str:
    """Of all that decides the table."""
    machine: Sequence[Any] = (cpu_model(), cpu_flags(), library_versions(("enc-encoder", "onnxruntime")))
    how = (VERSION, FORM, PRECISIONS, SHARES, tokens, threads)
    content = json.dumps([machine, how, config.model_dump(mode="json")])
    return hashlib.sha256(content.encode()).hexdigest()
