"""The ways to run a classifier, behind one face: prepare an input once, run it many times.

Each lives in a process of its own (see ``worker``): thread pools of two runtimes in one process get into each
other's way, up to 50-fold.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compress.deployed import find_graph
from compress.machine import list_gpus
from encoder.errors import CheckpointError, ConfigError, did_you_mean
from encoder.rows import TokenizedRows, length_sorted_batches

# Runtime → the precision its matrix products are computed in. The last one runs exported models only.
PRECISIONS = {
    "torch-fp32": "fp32",
    "torch-bf16": "bf16",
    "onnx-fp32": "fp32",
    "onnx-int8": "int8",
    "onnx-fp16": "fp16",
}
RUNTIMES = ("torch-fp32", "torch-bf16", "onnx-fp32", "onnx-int8")
DEVICES = ("cpu", "cuda")


@dataclass(frozen=True)
class Runtime:
    """A classifier that is ready to run.

    ``prepare`` turns rows into what ``run`` takes; it is not timed. ``run`` computes the logits and may
    return before the device has finished; ``synchronize`` waits for that. ``to_numpy`` makes what ``run``
    returns float32 [B, C]. ``device_memory_bytes`` is the most a device other than the CPU has held since
    ``reset_device_memory``; ``None`` on the CPU. ``model`` is the ``Classifier`` itself, if it runs in torch.
    """

    prepare: Callable[[TokenizedRows], Any]
    run: Callable[[Any], Any]
    to_numpy: Callable[[Any], NDArray[np.float32]]
    synchronize: Callable[[], object] = lambda: None
    reset_device_memory: Callable[[], object] = lambda: None
    device_memory_bytes: Callable[[], int | None] = lambda: None
    model: Any = None


def check_names(runtimes: Sequence[str], devices: Sequence[str]) -> None:
    """Raise ``ConfigError`` for a runtime or device that does not exist."""
    problems = []
    for kind, names, known in (("runtime", runtimes, RUNTIMES), ("device", devices, DEVICES)):
        if not names:
            problems.append(f"no {kind} given; choose among {', '.join(known)}")
        for name in names:
            if name not in (PRECISIONS if kind == "runtime" else known):
                hint = did_you_mean(name, known)
                problems.append(f"unknown {kind} {name!r}{hint}; choose among {', '.join(known)}")
    if problems:
        raise ConfigError.from_problems(problems)


def runs_a_graph(name: str) -> bool:
    """Whether the runtime ``name`` opens an ONNX graph; the others open a model folder."""
    return name.startswith("onnx")


def why_unavailable(name: str, device: str) -> str | None:
    """Why ``name`` cannot run on ``device`` here, fit for a table cell; ``None`` if it can."""
    if device == "cpu":
        return "fp16 is for GPUs" if name == "onnx-fp16" else None
    if not list_gpus():
        return "no GPU on this machine"
    if name == "onnx-int8":
        return "int8 runs on the CPU only"
    if runs_a_graph(name):
        import onnxruntime

        if "CUDAExecutionProvider" not in onnxruntime.get_available_providers():
            return "the installed onnxruntime has no CUDA"
    return None


def write_graph(name: str, model: Path, target: Path) -> None:
    """Write the ONNX graph of the model folder ``model`` that the runtime ``name`` opens to ``target``.

    Raises:
        CheckpointError: ``model`` cannot be loaded.
        ExportError: no graph can be made of it.
    """
    from compress.onnx_graph import build_graph, save_graph
    from compress.quantization import quantize_dynamic
    from encoder.checkpoint import load_classifier

    graph = build_graph(load_classifier(model))
    save_graph(quantize_dynamic(graph) if PRECISIONS[name] == "int8" else graph, target)


def open_runtime(name: str, model: Path, *, device: str, threads: int) -> Runtime:
    """Load ``model``, to be run by ``name`` on ``device`` with ``threads`` threads.

    ``model`` is a model folder; if ``runs_a_graph(name)`` an ONNX graph, or the folder of an exported model.

    Raises:
        CheckpointError: ``model`` cannot be loaded.
    """
    check_names([name], [device])
    if runs_a_graph(name):
        graph = find_graph(model) if model.is_dir() else model
        return _open_onnx(graph, device=device, threads=threads)
    return _open_torch(model, device=device, threads=threads, bf16=name == "torch-bf16")


def _open_torch(folder: Path, *, device: str, threads: int, bf16: bool) -> Runtime:
    import torch

    from encoder.batches import Batch
    from encoder.checkpoint import load_classifier
    from encoder.packing import Packing

    torch.set_num_threads(threads)
    model = load_classifier(folder).eval().to(device)

    def run(batch: Batch) -> torch.Tensor:
        # A new packing, because it remembers what it derives from the lengths, and a batch that is served
        # comes only once: that work belongs to the run.
        packing = Packing.from_lengths(batch.packing.lengths)
        batch = Batch(batch.input_ids, batch.token_type_ids, packing)
        with torch.inference_mode():
            logits: torch.Tensor = model(batch)
        return logits

    if bf16:
        # Never left: autocast keeps the converted weights only as long as it is open, and a server would
        # convert them once.
        ExitStack().enter_context(torch.autocast(device, torch.bfloat16))
    on_gpu = device == "cuda"
    return Runtime(
        prepare=lambda rows: Batch.from_rows(rows).to(device),
        run=run,
        to_numpy=lambda logits: logits.float().cpu().numpy(),
        synchronize=torch.cuda.synchronize if on_gpu else lambda: None,
        reset_device_memory=torch.cuda.reset_peak_memory_stats if on_gpu else lambda: None,
        device_memory_bytes=torch.cuda.max_memory_allocated if on_gpu else lambda: None,
        model=model,
    )


def _open_onnx(path: Path, *, device: str, threads: int) -> Runtime:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3  # errors
    providers = ["CUDAExecutionProvider"] if device == "cuda" else ["CPUExecutionProvider"]
    try:
        session = onnxruntime.InferenceSession(str(path), options, providers=providers)
    except (RuntimeError, ValueError) as error:
        raise CheckpointError(f"{path}: ONNX Runtime cannot open this graph: {error}") from error
    names = {node.name for node in session.get_inputs()}

    def prepare(rows: TokenizedRows) -> dict[str, NDArray[np.int64]]:
        inputs = pad_rows(rows)
        return {name: array for name, array in inputs.items() if name in names}

    return Runtime(
        prepare=prepare, run=lambda inputs: session.run(None, inputs)[0], to_numpy=lambda logits: logits
    )


def pad_rows(rows: TokenizedRows) -> dict[str, NDArray[np.int64]]:
    """The inputs of an ONNX graph, int64 [B, T] each: rows padded on the right to the longest of them."""
    B, T = len(rows), max(1, int(rows.lengths.max()))
    exists = np.arange(T) < rows.lengths[:, None]  # [B, T]
    inputs = {"attention_mask": exists.astype(np.int64)}
    for name, values in (("input_ids", rows.input_ids), ("token_type_ids", rows.token_type_ids)):
        inputs[name] = np.zeros((B, T), np.int64)
        inputs[name][exists] = values
    return inputs


def run_in_batches(runtime: Runtime, rows: TokenizedRows, batch_size: int) -> NDArray[np.float32]:
    """Logits [R, C] of ``rows``, in their order, from batches of near-equal length."""
    batches = length_sorted_batches(rows.lengths, batch_size)
    outputs = (runtime.run(runtime.prepare(rows.select(index))) for index in batches)
    logits = np.concatenate([runtime.to_numpy(output) for output in outputs])
    in_order = np.empty_like(logits)
    in_order[np.concatenate(batches)] = logits
    return in_order
