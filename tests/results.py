"""Results made of nothing: what tests of reports and of the ledger start from."""

from datetime import UTC, datetime, timedelta

from compress.latency import Latency
from compress.latency_table import LatencyTable
from compress.machine import Machine
from compress.paired import Speedup
from compress.size import Size
from compress.uncertainty import ScoreInterval
from compress.workload import Shape
from encoder.data_report import DataReport, SplitReport
from recipes.compress_result import Candidate, CompressResult, Goal
from recipes.freeze_verdict import judge_sweep
from recipes.measurements import BenchModel, BenchRatio, BenchResult, BenchRow, MeasuredTexts
from recipes.pruning_result import Control, PrunedLayer, PruningResult, SpeedupResult
from recipes.result import DataResult, FreezeSweep, ModelResult, Parent, Result, SweepPoint

MACHINE = Machine(
    cpu="A Processor With A Rather Long Name (R) CPU @ 2.00GHz, Seventh Generation",
    cpu_flags=("avx2", "fma", "avx512f", "avx512bw", "avx512_vnni", "avx512_bf16", "amx_int8"),
    architecture="x86_64",
    physical_cores=16,
    logical_cpus=32,
    memory_bytes=2**36,
    gpus=(),
    operating_system="an operating system",
    python="3.12.1",
    versions={"enc-encoder": "0.1.0", "torch": "2.13.0", "onnxruntime": "1.25.0", "numpy": "2.4.0"},
)
START = datetime(2026, 1, 1, tzinfo=UTC)


def make_shape(batch_size=1, sequence_length=128, **changes):
    values = {
        "batch_size": batch_size,
        "sequence_length": sequence_length,
        "mean_tokens": float(sequence_length or 93),
        "max_tokens": sequence_length or 512,
        "padding": 0.0 if sequence_length else 0.25,
        "batches": 1,
    }
    return Shape(**values | changes)


def make_latency(p50_ms=12.5, runtime="torch-fp32", device="cpu", shape=None, **changes):
    values = {
        "runtime": runtime,
        "device": device,
        "device_name": MACHINE.cpu,
        "precision": "fp32",
        "threads": 16,
        "shape": shape or make_shape(),
        "p50_ms": p50_ms,
        "p95_ms": p50_ms * 1.2,
        "p99_ms": p50_ms * 1.5,
        "mean_ms": p50_ms,
        "rows_per_s": 1e3 / p50_ms,
        "tokens_per_s": 128e3 / p50_ms,
        "runs": 100,
        "noise": 0.021,
        "warm_up_runs": 10,
        "steady": True,
        "peak_memory_bytes": 10**9,
    }
    return Latency(**values | changes)


def make_model(source="runs/a", sha256="a"):
    return ModelResult(
        source=source,
        sha256=sha256,
        family="bert",
        task="single_label",
        labels=("neg", "pos"),
        pair=False,
        num_hidden_layers=6,
        hidden_size=384,
        max_length=256,
    )


def make_size(bytes_on_disk=90_000_000):
    return Size(
        parameters=22_713_216,
        parameters_without_embeddings=10_795_392,
        bytes_on_disk=bytes_on_disk,
        macs_per_token={128: 10_813_440.0},
    )


def make_result(source="runs/a", sha256="a", parent="base", parent_source="models/base", **changes):
    """A fine-tuning that made ``sha256`` of ``parent``, minutes after ``START`` by its letter."""
    split = SplitReport(origin="test.csv", rows=500, classes={"neg": 250, "pos": 250})
    report = DataReport("news.csv", "single-label, 2 labels", {"text": "text"}, {"test": split})
    values = {
        "command": "finetune",
        "created": START + timedelta(minutes=ord(sha256[0]) - ord("a")),
        "seconds": 60.0,
        "output": source,
        "config": {},
        "seed": 0,
        "machine": MACHINE,
        "parent": Parent(source=parent_source, sha256=parent) if parent else None,
        "notes": (),
        "model": make_model(source, sha256),
        "data": DataResult(source="news.csv", fingerprint="f", report=report, encoded={}),
        "training": None,
        "main_metric": "accuracy",
        "scores": {"test": {"accuracy": 0.954}},
        "intervals": {"test": ScoreInterval(metric="accuracy", score=0.954, low=0.934, high=0.97, rows=500)},
        "latency": (make_latency(),),
        "size": make_size(),
    }
    return Result(**values | changes)


def make_sweep(scores, max_drop=None, memory=True, rows=500):
    """A sweep that found ``scores``, k → by seed; a tenth less of time and memory with each k."""
    points, verdict = judge_sweep(
        scores,
        rows=rows,
        max_drop=None if max_drop is None else max_drop / 100,
        sampling_errors=lambda best: dict.fromkeys(scores, 0.01),
    )
    seeds = len(next(iter(scores.values())))
    return FreezeSweep(
        metric="accuracy",
        split="validation",
        rows=rows,
        seeds=tuple(range(seeds)),
        max_drop=max_drop,
        total_parameters=22_000_000,
        points=tuple(
            SweepPoint(
                **point.model_dump(),
                trainable_parameters=round(22_000_000 * 0.8**point.k),
                seconds=max(10, 100 - 10 * point.k),
                peak_memory_bytes=max(10**8, 10**9 - 10**8 * point.k) + 10**9 if memory else None,
                added_memory_bytes=max(10**8, 10**9 - 10**8 * point.k) if memory else None,
                device_memory_bytes=None,
            )
            for point in points
        ),
        verdict=verdict,
        kept_seed=0,
        frozen_seconds=12.0,
    )


def make_bench(models=(("runs/a", "a"),), rows=None, ratios=(), **changes):
    """A run of `enc bench` on ``models`` (name, SHA-256), each with one latency unless ``rows`` are given."""
    if rows is None:
        rows = [BenchRow(model=number, latency=make_latency(10.0)) for number in range(len(models))]
    values = {
        "command": "bench",
        "created": START + timedelta(days=1),
        "seconds": 30.0,
        "output": None,
        "config": {},
        "seed": 0,
        "machine": MACHINE,
        "parent": Parent(source=models[0][0], sha256=models[0][1]),
        "notes": (),
        "models": tuple(BenchModel(model=make_model(*one), size=make_size()) for one in models),
        "data": None,
        "rows": tuple(rows),
        "ratios": tuple(ratios),
    }
    return BenchResult(**values | changes)


def make_ratio(ratio=1.5, low=1.4, high=1.6, verdict="faster", model=1, shape=None, runtime="torch-fp32"):
    return BenchRatio(
        model=model,
        runtime=runtime,
        baseline=0,
        baseline_runtime="torch-fp32",
        device="cpu",
        shape=shape or make_shape(),
        speedup=Speedup(ratio=ratio, low=low, high=high, launches=6),
        verdict=verdict,
    )


def make_pruning(**changes):
    """Two layers of heads, of which four of six were removed."""
    layers = (
        PrunedLayer(
            layer=0,
            before=4,
            after=2,
            heads_before=(0, 1, 2, 3),
            heads_after=(0, 3),
            importance=(0.5, 0.01, 0.02, 0.9),
        ),
        PrunedLayer(
            layer=1, before=2, after=0, heads_before=(1, 3), heads_after=(), importance=(0.001, 0.002)
        ),
    )
    values = {
        "unit": "heads",
        "method": "fisher",
        "scope": "global",
        "normalize": False,
        "targets": "labels",
        "steps": 1,
        "rows": 1024,
        "rows_split": "train",
        "repair_rows": 512,
        "recover_epochs": 0,
        "units_before": 6,
        "units_after": 2,
        "sparsity": 4 / 6,
        "layers": layers,
        "before": {"test": {"accuracy": 0.96}},
        "control": Control(split="test", scores=(0.7, 0.8, 0.9)),
        "max_drop": None,
        "trials": (),
        "failure": None,
        "masked_difference": 2e-7,
        "reloaded_difference": 0.0,
        "size_before": make_size(100_000_000),
        "latency_before": (make_latency(15.0),),
        "speedups": (make_speedup(1.2, 1.1, 1.3, "faster"),),
        "seconds": 12.0,
    }
    return PruningResult(**values | changes)


def make_compress():
    """Four candidates of a search, of which the second was chosen."""
    candidates = tuple(
        Candidate(
            name=f"candidate {number}",
            layers=6 - number,
            heads=72,
            neurons=9216,
            precision="int8",
            kept_layers=(),
            score=0.95 - number / 100,
            drop=number / 100,
            rows=500,
            predicted_ms=4.0 - number,
            latency_ms=2.9 if number == 1 else None,
            size_bytes=10**7,
            chosen=number == 1,
            pareto=number < 3,
        )
        for number in range(4)
    )
    times = LatencyTable(
        tokens=93, threads=1, device_name=MACHINE.cpu, form="fused", depth=2, times={}, reliable=True
    )
    return CompressResult(
        goal=Goal(max_drop=1.0, target_speedup=4.0, target_ms=None, baseline_ms=12.0, limit_ms=3.0),
        met=True,
        failure=None,
        verdict=("The goal is met.",),
        table=times,
        candidates=candidates,
        importance_rows=512,
        trained=1,
        num_epochs=2,
        folder=None,
        before={"test": {"accuracy": 0.95}},
        size_before=make_size(),
        latency_before=(),
        speedups=(),
    )


def make_speedup(ratio, low, high, verdict="faster"):
    measured = Speedup(ratio=ratio, low=low, high=high, launches=4)
    return SpeedupResult(device="cpu", shape=make_shape(), speedup=measured, verdict=verdict)


TEXTS = MeasuredTexts(
    source="news.csv",
    split="test",
    rows=500,
    rows_cut=3,
    tokens_lost=1200,
    median_tokens=81.0,
    p95_tokens=240.0,
    max_tokens=512,
    histogram={64: 200, 128: 200, 512: 100},
)
