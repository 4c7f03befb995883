"""Measure models and compare them: a `BenchConfig` in, a `BenchResult` out."""

import time
from collections.abc import Iterator, Sequence
from itertools import product

from compress.comparison import Comparison, Contestant, compare_latency, compared_pairs
from compress.deployed import find_graph, read_export, runtimes_of, warn_of_cpu
from compress.latency import Latency, Unavailable, measure_latency
from compress.paired import Speedup
from compress.workload import Workload
from encoder.rows import TokenizedRows
from recipes.account import describe_run
from recipes.bench_config import BenchConfig
from recipes.inputs import make_workload, read_inputs
from recipes.measurements import BenchModel, BenchRatio, BenchResult, BenchRow
from recipes.models import FoundModel
from recipes.observer import Observer, Recorder, Silent
from recipes.result import describe_model, describe_parent, save_run

DEFAULT_LENGTHS = (32, 128)
DEVICES = {"cpu": ("cpu",), "cuda": ("cuda",), "all": ("cpu", "cuda")}
SECONDS_ALONE, SECONDS_COMPARED = 1.0, 3.0


def bench(config: BenchConfig, observer: Observer | None = None) -> BenchResult:
    """The latency and the size of each model; of several, how much faster than the first each is.

    Raises:
        ConfigError, DataError, CheckpointError: before anything is measured.
    """
    started = time.perf_counter()
    recorder = Recorder(observer or Silent())
    inputs = read_inputs(config.models, config, recorder, other_devices="cpu or all", exported=True)
    models, rows = inputs.models, inputs.rows
    lengths = config.sequence_lengths or (_default_lengths(models) if rows is None else ())
    workload = make_workload(models, config.batch_sizes, lengths, rows)
    measured = [_measure_size(model, _size_lengths(lengths, rows)) for model in models]
    for note in (*_equal_shapes(models), *_exported(models)):
        recorder.note(note)

    recorder.stage("Measuring latency, each runtime in a process of its own")
    timed, ratios = _measure(config, models, workload, recorder)
    result = BenchResult(
        **describe_run(
            "bench",
            config,
            seconds=time.perf_counter() - started,
            output=config.output,
            seed=0,
            parent=describe_parent(models[0].source, models[0].folder),
            notes=recorder.notes,
        ),
        models=tuple(measured),
        data=inputs.texts,
        rows=tuple(timed),
        ratios=tuple(ratios),
    )
    save_run(result, inputs.folder)
    return result


def _default_lengths(models: Sequence[FoundModel]) -> tuple[int, ...]:
    limit = min(model.max_tokens for model in models)
    return tuple(dict.fromkeys(min(length, limit) for length in DEFAULT_LENGTHS))


def _size_lengths(lengths: Sequence[int], rows: TokenizedRows | None) -> list[int]:
    """At which lengths to state the arithmetic: the grid's, and the mean of the data."""
    mean = [] if rows is None else [max(1, round(float(rows.lengths.mean())))]
    return sorted({*lengths, *mean})


def _measure_size(model: FoundModel, lengths: Sequence[int]) -> BenchModel:
    """Loads the model, so that one that cannot be loaded ends the run before anything is measured."""
    from compress.size import measure_size
    from encoder.checkpoint import load_classifier
    from encoder.model import Classifier

    if model.is_exported:
        find_graph(model.folder)
        loaded = Classifier(model.config, model.task)
    else:
        loaded = load_classifier(model.folder)
    size = measure_size(loaded, model.folder, sequence_lengths=lengths)
    return BenchModel(model=describe_model(model.source, model.folder, model, model.max_length()), size=size)


def _equal_shapes(models: Sequence[FoundModel]) -> Iterator[str]:
    for model in models[1:]:
        if model.is_exported or models[0].is_exported:
            continue
        if model.config == models[0].config and model.task == models[0].task:
            yield (
                f"{model.source} has the shapes of {models[0].source}: in one runtime both compute the same, "
                "and a difference in speed is noise."
            )


def _exported(models: Sequence[FoundModel]) -> Iterator[str]:
    for model in models:
        if model.is_exported:
            export = read_export(model.folder)
            yield f"{model.source} is exported and runs as it is: {export.form} graph, {export.runtime}."
            yield from warn_of_cpu(export)


def _measure(
    config: BenchConfig, models: Sequence[FoundModel], workload: Workload, observer: Observer
) -> tuple[list[BenchRow], list[BenchRatio]]:
    compared = len(models) > 1
    seconds = config.min_seconds
    if seconds is None:
        seconds = SECONDS_COMPARED if compared else SECONDS_ALONE
    devices = DEVICES[config.device]

    def progress(done: int, total: int, what: str) -> None:
        observer.working(done, total)

    if not compared:
        results = measure_latency(
            models[0].folder,
            workload,
            runtimes=config.runtimes,
            devices=devices,
            threads=config.threads,
            min_runs=config.min_runs,
            min_seconds=seconds,
            progress=progress,
        )
        return [BenchRow(model=0, latency=latency) for latency in results], []
    comparison = compare_latency(
        [model.folder for model in models],
        workload,
        runtimes=config.runtimes,
        devices=devices,
        threads=config.threads,
        min_runs=config.min_runs,
        min_seconds=seconds,
        launches=config.launches,
        progress=progress,
    )
    runtimes = [runtimes_of(model.folder, config.runtimes) for model in models]
    return number_models(comparison, devices, runtimes, len(workload.cases))


def number_models(
    comparison: Comparison, devices: Sequence[str], runtimes: Sequence[Sequence[str]], cases: int
) -> tuple[list[BenchRow], list[BenchRatio]]:
    """Rows and ratios with models by number: one folder may be given twice, to see what noise looks like.

    ``runtimes`` are those of each model.
    """
    measured = iter(comparison.measured)
    rows: list[BenchRow] = []
    present: list[tuple[int, Contestant]] = []
    each = [model for _ in devices for model, names in enumerate(runtimes) for _ in names]
    for model in each:
        first = next(measured)
        rows.append(BenchRow(model=model, latency=first.latency))
        if isinstance(first.latency, Latency):
            present.append((model, first.contestant))
            rows += [BenchRow(model=model, latency=next(measured).latency) for _ in range(cases - 1)]
        else:
            assert isinstance(first.latency, Unavailable)
    ratios = []
    pairs = compared_pairs([contestant for _, contestant in present])
    for ((index, baseline), _), one in zip(product(pairs, range(cases)), comparison.compared, strict=True):
        ratio = BenchRatio(
            model=present[index][0],
            runtime=one.contestant.runtime,
            baseline=present[baseline][0],
            baseline_runtime=one.baseline.runtime,
            device=one.contestant.device,
            shape=one.shape,
            speedup=one.speedup,
            verdict=judge(one.speedup),
        )
        ratios.append(ratio)
    return rows, ratios


def judge(speedup: Speedup) -> str:
    """``faster``, ``slower``, or that the difference is inside the noise."""
    if speedup.is_noise:
        return "inside the noise"
    return "faster" if speedup.ratio > 1 else "slower"
