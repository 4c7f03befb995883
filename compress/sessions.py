"""Worker processes with a model and its inputs loaded, ready to be timed."""

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from compress.process import WorkerProcess
from compress.runtimes import runs_a_graph
from compress.workload import Case, Workload
from encoder.model_folder import is_exported
from encoder.rows import TokenizedRows


class Sessions:
    """Opens workers for one workload; a context manager, because files are shared with them.

    An ONNX graph is made from a model at its first use, in a process that ends before anything is timed: the
    process that runs the graph never loads torch. An exported model has its graph already.
    """

    def __init__(self, workload: Workload, *, threads: int) -> None:
        self._threads = threads
        self._folder = tempfile.TemporaryDirectory(prefix="enc-")
        self._scratch = Path(self._folder.name)
        self._inputs = self._scratch / "workload.npz"
        self._graphs: dict[tuple[Path, str], Path] = {}
        workload.save(self._inputs)

    def open(self, runtime: str, model: Path, *, device: str) -> WorkerProcess:
        """A process that has ``model`` and all inputs in memory. The caller closes it.

        Raises:
            CheckpointError: ``model`` holds no classifier.
            ExportError: no graph can be made of it.
        """
        worker = self.begin(runtime, model, device=device)
        try:
            worker.receive()
        except BaseException:
            worker.close(kill=True)
            raise
        return worker

    def begin(self, runtime: str, model: Path, *, device: str) -> WorkerProcess:
        """As ``open``, but the process is still loading; its first answer says when it is ready."""
        what = f"{runtime} on {model}"
        source = self._graph(runtime, model) if runs_a_graph(runtime) and not is_exported(model) else model
        worker = WorkerProcess(what, threads=self._threads)
        try:
            worker.send(
                "open",
                runtime=runtime,
                model=str(source),
                device=device,
                threads=self._threads,
                workload=str(self._inputs),
            )
        except BaseException:
            worker.close(kill=True)
            raise
        return worker

    def _graph(self, runtime: str, model: Path) -> Path:
        key = (model.resolve(), runtime)
        if key not in self._graphs:
            target = self._scratch / f"{len(self._graphs)}.onnx"
            with WorkerProcess(f"writing the graph of {model}", threads=self._threads) as writer:
                writer.ask("write_graph", runtime=runtime, model=str(model), target=str(target))
            self._graphs[key] = target
        return self._graphs[key]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()


def fresh_logits(
    runtime: str,
    folder: Path,
    rows: TokenizedRows,
    batches: Sequence[NDArray[np.int64]],
    *,
    device: str = "cpu",
    threads: int,
    on_rows: Callable[[int], object] = lambda rows: None,
) -> NDArray[np.float32]:
    """Logits float32 [R, C] of ``rows`` by what a fresh process loads from ``folder``.

    ``batches`` are the indices of the rows that are computed together, each row in one. ``on_rows`` is told
    how many rows each batch added.

    Raises:
        EncError: the model cannot be loaded, or its process crashed.
    """
    cases = tuple(Case(len(index), None, (rows.select(index),)) for index in batches)
    found: list[NDArray[np.float32]] = []
    with (
        Sessions(Workload(cases), threads=threads) as sessions,
        sessions.open(runtime, folder, device=device) as worker,
    ):
        for case, index in enumerate(batches):
            (logits,) = worker.ask("logits", case=case)["logits"]
            found.append(np.array(logits, dtype=np.float32))
            on_rows(len(index))
    order = np.concatenate(batches)
    logits_in_order = np.empty((len(rows), found[0].shape[1]), dtype=np.float32)
    logits_in_order[order] = np.concatenate(found)
    return logits_in_order
