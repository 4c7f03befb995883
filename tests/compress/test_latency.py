from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from compress.latency import Latency, Unavailable, measure_latency
from compress.process import WorkerProcess
from compress.workload import Case, Workload, from_grid, from_rows
from encoder.batches import Batch
from encoder.checkpoint import load_classifier
from encoder.errors import CheckpointError, ConfigError
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
        assert (latency.threads, latency.device, latency.precision) == (1, "cpu", "fp32")
        assert Latency.model_validate_json(latency.model_dump_json()) == latency


def test_a_machine_without_gpu_is_a_result_and_no_error(
    tiny_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("compress.latency.list_gpus", tuple)
    (result,) = measure_latency(tiny_folder, GRID, devices=["cuda"])
    assert result == Unavailable(runtime="torch-fp32", device="cuda", reason="no GPU on this machine")


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU on this machine")
def test_a_gpu_is_measured_with_its_own_memory(tiny_folder: Path) -> None:
    for result in measure_latency(tiny_folder, GRID, devices=["cuda"], runtimes=["torch-fp32", "torch-bf16"]):
        assert isinstance(result, Latency)
        assert result.device_memory_bytes
        assert result.device_name != "no GPU on this machine"


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
    monkeypatch.setattr("compress.latency.WorkerProcess", None)
    with pytest.raises(ConfigError) as error:
        measure_latency(tiny_folder, GRID, **options)
    assert message in str(error.value)


def test_a_folder_that_is_no_model_is_a_checkpoint_error(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="not a model folder"):
        measure_latency(tmp_path, GRID, threads=1)


def ask_for_logits(runtime: str, folder: Path, workload: Workload, inputs: Path) -> list[list[list[float]]]:
    workload.save(inputs)
    with WorkerProcess(runtime, threads=1) as worker:
        worker.ask("open", runtime=runtime, model=str(folder), device="cpu", threads=1, workload=str(inputs))
        answers = [worker.ask("logits", case=index)["logits"] for index in range(len(workload.cases))]
    return [batch for answer in answers for batch in answer]


@pytest.mark.parametrize(("runtime", "tolerance"), [("torch-fp32", 1e-6), ("torch-bf16", 0.1)])
def test_what_is_timed_is_the_models_logits(
    tiny_folder: Path,
    rows_of: Callable[..., TokenizedRows],
    tmp_path: Path,
    runtime: str,
    tolerance: float,
) -> None:
    rows = rows_of([3, 17, 0, 9])
    workload = Workload((Case(4, None, (rows,)),))
    with torch.inference_mode():
        expected = load_classifier(tiny_folder)(Batch.from_rows(rows)).numpy()
    (logits,) = ask_for_logits(runtime, tiny_folder, workload, tmp_path / "inputs.npz")
    assert np.ptp(expected) > 0.5
    assert np.array(logits) == pytest.approx(expected, abs=tolerance)
    exact = np.abs(np.array(logits) - expected).max() < 1e-6
    assert exact == (runtime == "torch-fp32")
