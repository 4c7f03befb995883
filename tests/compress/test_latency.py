import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from safetensors.torch import load_file, save_file

from compress.latency import Latency, Unavailable, measure_latency
from compress.machine import Gpu
from compress.process import WorkerProcess
from compress.runtimes import RUNTIMES, open_runtime, pad_rows, why_unavailable, write_graph
from compress.sessions import Sessions
from compress.timing import time_passes
from compress.workload import Case, Workload, from_grid, from_rows
from encoder.batches import Batch
from encoder.checkpoint import load_classifier
from encoder.errors import CheckpointError, ConfigError, EncError
from encoder.rows import TokenizedRows

GRID = from_grid([1, 4], [8], vocab_size=50, max_tokens=40)


def test_each_case_of_data_and_grid_is_measured(
    tiny_folder: Path, rows_of: Callable[..., TokenizedRows]
) -> None:
    seen = []
    workload = from_rows(rows_of(list(range(1, 40))), batch_sizes=[1, 8])
    results = measure_latency(
        tiny_folder,
        workload,
        threads=1,
        min_runs=10,
        min_seconds=0.0,
        progress=lambda done, total, what: seen.append((done, total, what)),
    )
    assert seen == [(0, 2, "torch-fp32 on cpu, batch 1, data"), (1, 2, "torch-fp32 on cpu, batch 8, data")]
    for latency, case in zip(results, workload.cases, strict=True):
        assert isinstance(latency, Latency)
        assert latency.shape == case.shape
        assert 0 < latency.p50_ms <= latency.p95_ms <= latency.p99_ms
        assert latency.runs >= max(10, 5 * len(case.batches))
        assert latency.rows_per_s == pytest.approx(case.batch_size / latency.mean_ms * 1e3)
        assert latency.tokens_per_s == pytest.approx(latency.rows_per_s * case.shape.mean_tokens)
        assert latency.peak_memory_bytes > 10 * 2**20
        assert latency.cpu_wait is None or 0 <= latency.cpu_wait < 1
        assert (latency.threads, latency.device, latency.precision) == (1, "cpu", "fp32")
        assert Latency.model_validate_json(latency.model_dump_json()) == latency


def test_a_machine_without_gpu_is_a_result_and_no_error(
    tiny_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("compress.runtimes.list_gpus", tuple)
    (result,) = measure_latency(tiny_folder, GRID, devices=["cuda"])
    assert result == Unavailable(runtime="torch-fp32", device="cuda", reason="no GPU on this machine")


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU on this machine")
def test_a_gpu_is_measured_with_its_own_memory(tiny_folder: Path) -> None:
    for result in measure_latency(tiny_folder, GRID, devices=["cuda"], runtimes=["torch-fp32", "torch-bf16"]):
        assert isinstance(result, Latency)
        assert result.device_memory_bytes
        assert result.device_name != "no GPU on this machine"


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU on this machine")
@pytest.mark.parametrize("runtime", ["torch-fp32", "torch-bf16"])
def test_what_is_timed_on_a_gpu_includes_the_work_and_not_only_its_launch(
    tiny_folder: Path, runtime: str
) -> None:
    synchronize = open_runtime(runtime, tiny_folder, device="cuda", threads=1).synchronize
    matrix = torch.randn(8192, 8192, device="cuda")

    def run(_: int) -> torch.Tensor:
        return matrix @ matrix @ matrix @ matrix

    run(0)
    torch.cuda.synchronize()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    run(0)
    end.record()
    torch.cuda.synchronize()
    device_s = start.elapsed_time(end) / 1e3
    launched = np.median(time_passes(run, 1, min_runs=5, min_seconds=0.0))
    torch.cuda.synchronize()
    timed = np.median(time_passes(run, 1, min_runs=5, min_seconds=0.0, synchronize=synchronize))
    assert launched < 0.5 * device_s
    assert timed > 0.8 * device_s


@pytest.mark.parametrize(("cpu_wait", "disturbed"), [(None, False), (0.01, False), (0.3, True)])
def test_a_machine_that_was_busy_with_something_else_is_said_to_be(
    cpu_wait: float | None, disturbed: bool
) -> None:
    numbers = dict.fromkeys(("p50_ms", "p95_ms", "p99_ms", "mean_ms", "rows_per_s", "tokens_per_s"), 1.0)
    latency = Latency(
        runtime="torch-fp32",
        device="cpu",
        device_name="some CPU",
        precision="fp32",
        threads=1,
        shape=GRID.cases[0].shape,
        runs=5,
        noise=0.0,
        warm_up_runs=5,
        steady=True,
        cpu_wait=cpu_wait,
        peak_memory_bytes=1,
        **numbers,
    )
    assert latency.is_reliable is not disturbed


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"runtimes": ["torch-fp23"]}, "unknown runtime 'torch-fp23'; did you mean 'torch-fp32'?"),
        ({"runtimes": []}, "no runtime given"),
        ({"devices": ["gpu"]}, "unknown device 'gpu'"),
        ({"min_runs": 0}, "timed runs is 0; expected at least 1"),
        ({"min_seconds": float("inf")}, "timed seconds are inf"),
        ({"threads": -1}, "threads is -1"),
    ],
)
def test_what_cannot_be_measured_is_refused_before_anything_starts(
    tiny_folder: Path, options: dict[str, object], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("compress.latency.Sessions", None)
    with pytest.raises(ConfigError) as error:
        measure_latency(tiny_folder, GRID, **options)
    assert message in str(error.value)


def test_a_folder_that_is_no_model_is_a_checkpoint_error(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="not a model folder"):
        measure_latency(tmp_path, GRID, threads=1)


@pytest.mark.parametrize(
    ("runtime", "exact", "close"),
    [
        ("torch-fp32", True, 1e-6),
        ("torch-bf16", False, 0.1),
        ("onnx-fp32", True, 1e-5),
        ("onnx-int8", False, 0.3),
    ],
)
def test_what_is_timed_is_the_models_logits(
    tiny_folder: Path, rows_of: Callable[..., TokenizedRows], runtime: str, exact: bool, close: float
) -> None:
    rows = rows_of([3, 17, 0, 9])
    with torch.inference_mode():
        expected = load_classifier(tiny_folder)(Batch.from_rows(rows)).numpy()
    with (
        Sessions(Workload((Case(4, None, (rows,)),)), threads=1) as sessions,
        sessions.open(runtime, tiny_folder, device="cpu") as worker,
    ):
        (logits,) = worker.ask("logits", case=0)["logits"]
    error = np.abs(np.array(logits) - expected).max()
    assert np.ptp(expected) > 0.5
    assert error < close
    assert exact == (error < 1e-5)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_process_holds_one_runtime_only_also_after_measuring(
    tiny_folder: Path, tmp_path: Path, runtime: str
) -> None:
    GRID.save(tmp_path / "inputs.npz")
    model = tiny_folder
    if runtime.startswith("onnx"):
        model = tmp_path / "model.onnx"
        write_graph(runtime, tiny_folder, model)
    inputs = str(tmp_path / "inputs.npz")
    options = {"runtime": runtime, "model": str(model), "device": "cpu", "threads": 1, "workload": inputs}
    with WorkerProcess(runtime, threads=1) as worker:
        worker.ask("open", **options)
        worker.ask("measure", case=0, min_runs=1, min_seconds=0.0)
        libraries = worker.ask("open", **options)["libraries"]
    assert libraries == ["onnxruntime" if runtime.startswith("onnx") else "torch"]


def test_each_runtime_and_device_is_measured_in_a_process_of_its_own(
    tiny_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = []

    class Refusing(WorkerProcess):
        def __init__(self, what: str, *, threads: int) -> None:
            opened.append(what)
            raise EncError("not started")

    monkeypatch.setattr("compress.sessions.WorkerProcess", Refusing)
    with Sessions(GRID, threads=1) as sessions:
        for runtime in RUNTIMES:
            with pytest.raises(EncError, match="not started"):
                sessions.open(runtime, tiny_folder, device="cpu")
    graph = f"writing the graph of {tiny_folder}"  # torch makes it, so not in the process that runs it
    assert opened == [f"torch-fp32 on {tiny_folder}", f"torch-bf16 on {tiny_folder}", graph, graph]


def test_a_model_stored_in_half_precision_is_measured_in_float32(
    tiny_folder: Path, rows_of: Callable[..., TokenizedRows], tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(tiny_folder, tmp_path / "half"))
    path = folder / "model.safetensors"
    save_file({name: weight.half() for name, weight in load_file(path).items()}, path)
    rows = rows_of([3, 17, 9])
    runtime = open_runtime("torch-fp32", folder, device="cpu", threads=1)
    assert {parameter.dtype for parameter in runtime.model.parameters()} == {torch.float32}
    assert runtime.run(runtime.prepare(rows)).dtype == torch.float32
    write_graph("onnx-fp32", folder, tmp_path / "model.onnx")
    stored = {weight.data_type for weight in onnx.load(tmp_path / "model.onnx").graph.initializer}
    assert onnx.TensorProto.FLOAT in stored
    assert not stored & {onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16}


@pytest.mark.parametrize(
    ("runtime", "reason"),
    [
        ("onnx-int8", "int8 runs on the CPU only"),
        ("onnx-fp32", "the installed onnxruntime has no CUDA"),
        ("torch-fp32", None),
    ],
)
def test_a_runtime_that_cannot_use_the_gpu_says_why(
    monkeypatch: pytest.MonkeyPatch, runtime: str, reason: str | None
) -> None:
    gpu = Gpu(name="some GPU", memory_bytes=1, compute_capability=(8, 0))
    monkeypatch.setattr("compress.runtimes.list_gpus", lambda: (gpu,))
    monkeypatch.setattr("onnxruntime.get_available_providers", lambda: ["CPUExecutionProvider"])
    assert why_unavailable(runtime, "cuda") == reason


def test_padded_rows_are_as_wide_as_the_longest_and_no_wider() -> None:
    rows = TokenizedRows(np.array([7, 8, 9], np.int32), np.array([0, 1, 1], np.int8), np.array([0, 1, 1, 3]))
    inputs = pad_rows(rows)
    assert inputs["input_ids"].tolist() == [[7, 0], [0, 0], [8, 9]]
    assert inputs["attention_mask"].tolist() == [[1, 0], [0, 0], [1, 1]]
    assert inputs["token_type_ids"].tolist() == [[0, 0], [0, 0], [1, 1]]


def test_no_runtime_gets_a_token_more_than_the_longest_row_of_a_batch_needs(
    tiny_folder: Path, rows_of: Callable[..., TokenizedRows]
) -> None:
    """A baseline padded to the model's limit would make every other one look fast."""
    rows = rows_of([*np.random.default_rng(0).integers(1, 20, 40).tolist(), 38])
    prepare = open_runtime("torch-fp32", tiny_folder, device="cpu", threads=1).prepare
    for case in from_rows(rows, batch_sizes=[1, 8]).cases:
        for batch in case.batches:
            longest = int(batch.lengths.max())
            assert {array.shape for array in pad_rows(batch).values()} == {(len(batch), longest)}
            packed = prepare(batch)
            assert len(packed.input_ids) == int(batch.lengths.sum())
            assert packed.packing.max_length == longest
