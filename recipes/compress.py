"""Make a model as small and fast as a goal asks: a `CompressConfig` in, a folder to deploy, its `Result` out.

All that is cheap comes first: a wrong option, a label that does not fit or a folder that cannot be made ends
the run before anything is computed. Then a latency table is measured, candidates are scored without training,
and only where none of them is good enough some are trained. The folder appears when it is complete.
"""

import shutil
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from pydantic import ValidationError

from compress.contention import core_time, is_disturbed, waiting_share
from compress.deployed import CARD_FILE
from compress.latency_table import LatencyTable
from compress.process import default_threads
from compress.size import TORCH_FOLDER, measure_size
from encoder.errors import CompressionError, ExportError
from encoder.files import write_atomic
from recipes.account import make_account
from recipes.against import describe_against
from recipes.compress_attempts import DECIDES, Attempt, Exported
from recipes.compress_config import CompressConfig
from recipes.compress_result import CompressResult, Goal
from recipes.compress_search import Search
from recipes.compress_verdict import describe_verdict, why_missed
from recipes.export import describe_export
from recipes.export_proof import prove
from recipes.first_look import look_first
from recipes.model_card import make_card
from recipes.observer import Observer, Recorder, Silent
from recipes.pruning_inputs import PruningInputs, look_at_model, read_rows, score_before
from recipes.result import RUN_FILE, Result, describe_model, describe_parent
from recipes.resuming import claim, finish
from recipes.scoring import Scored, score_split
from recipes.trained import make_latency_workload

if TYPE_CHECKING:
    from encoder.model import Classifier

TABLE_FILE = "latency-table.json"


def compress(config: CompressConfig, observer: Observer | None = None) -> Result:
    """The best model that meets the goal, otherwise the nearest; ``Result.compress.failure``: why not.

    With ``resume`` a run of the same options goes on where it was interrupted: trainings continue, finished
    ones and the latency table are kept, what comes before is computed again.

    Raises:
        ConfigError, DataError, CheckpointError: before anything is computed, with all that is wrong of a
        kind. ExportError: no graph of such a model can be written. CompressionError: no export may be used.
    """
    started = time.perf_counter()
    recorder = Recorder(observer or Silent())
    folder, finished = look_first("compress", config, recorder, needs_classifier=True)
    if finished is not None:
        return finished
    start = look_at_model(config, recorder)
    data = read_rows(config, start, recorder)
    parent = describe_parent(start.found.source, start.found.folder)
    work = claim(folder, config, model=parent.sha256, data=data.fingerprint)
    inputs = score_before(start, parent, data, recorder)
    _tell_ahead(config, inputs, work, recorder)
    try:
        table, goal = _measure(config, inputs, work, recorder)
        search = Search.begin(config, inputs, table, goal, work, recorder)
        search.run()
        result = _finish(search, inputs, folder.work, started)
    except (CompressionError, ExportError):  # would come again: there is nothing to go on with
        shutil.rmtree(folder.work, ignore_errors=True)
        raise
    write_atomic(folder.work / CARD_FILE, make_card(result))
    write_atomic(folder.work / RUN_FILE, result.to_json())
    finish(folder)
    return result


def _tell_ahead(config: CompressConfig, inputs: PruningInputs, work: Path, observer: Observer) -> None:
    """Say what is going to be done and how long it takes, by a trial with a model of the same shape."""
    from compress.latency_probing import known_table
    from encoder.checkpoint import load_classifier
    from recipes.compress_time import foresee
    from recipes.plan_context import StepContext
    from recipes.row_times import measure_times
    from recipes.scoring import choose_precision

    started, before = time.perf_counter(), core_time()
    start, rows = inputs.start, inputs.splits.rows
    observer.stage("Trying how long a row takes")
    times = measure_times(
        load_classifier(start.found.folder).to(start.device),  # the trial changes it
        rows["train"],
        batch_size=config.batch_size,
        precision=choose_precision("auto", start.device),
        device=start.device,
    )
    counts = {name: len(one) for name, one in rows.items()}
    context = StepContext(start.config, start.config, counts, times.tokens, times)
    threads, tokens = default_threads(config.threads), _table_tokens(inputs)
    known = (work / TABLE_FILE).exists() or known_table(start.config, tokens=tokens, threads=threads)
    busy = is_disturbed(waiting_share(before, core_time()))
    forecast = foresee(config, context, has_table=bool(known), busy=busy)
    observer.ahead(replace(forecast, trial_seconds=time.perf_counter() - started))


def _table_tokens(inputs: PruningInputs) -> int:
    """The length of the rows that the latency table is for."""
    return max(1, round(float(np.median(inputs.splits.rows[DECIDES].lengths))))


def _measure(
    config: CompressConfig, inputs: PruningInputs, work: Path, observer: Observer
) -> tuple[LatencyTable, Goal]:
    """The latency table of this machine, and the goal in ms; what an interrupted run found is taken."""
    from compress.latency_probing import find_table, measure_undisturbed
    from compress.workload import Workload

    file = work / TABLE_FILE
    with suppress(OSError, ValidationError, ValueError, KeyError):
        lines = file.read_text(encoding="utf-8").splitlines()
        return LatencyTable.model_validate_json(lines[0]), Goal.model_validate_json(lines[1])
    threads, tokens = default_threads(config.threads), _table_tokens(inputs)
    observer.stage("Measuring the original in torch")
    single = Workload(make_latency_workload(inputs.splits.rows[DECIDES]).cases[:1])
    baseline = measure_undisturbed(inputs.start.found.folder, "torch-fp32", single, threads=threads)
    observer.stage(f"Measuring what heads, neurons and layers take here, at {tokens} tokens")
    table = find_table(inputs.start.config, tokens=tokens, threads=threads, on_done=observer.working)
    asked = config.target_ms
    if config.target_speedup is not None:
        asked = baseline / config.target_speedup
    assert asked is not None
    goal = Goal(
        max_drop=config.max_drop,
        target_speedup=config.target_speedup,
        target_ms=config.target_ms,
        baseline_ms=baseline,
        limit_ms=asked,
    )
    if not table.reliable:
        observer.note("Other work disturbed the latency table, so it is not kept for other runs.")
    write_atomic(file, f"{table.model_dump_json()}\n{goal.model_dump_json()}\n")
    return table, goal


def _finish(search: Search, inputs: PruningInputs, work: Path, started: float) -> Result:
    """The chosen model in ``work``, scored on test, and the account of it all."""
    candidates, attempt = search.conclude()
    exported = attempt.export
    assert exported is not None
    config, recorder = search.config, search.recorder
    for path in exported.folder.iterdir():
        shutil.copyfile(path, work / path.name)
    scored = _score_all(config, exported, inputs, work, recorder)
    model = _keep_torch(config, attempt, inputs, work, recorder, started)
    failure = why_missed(candidates, search.goal)
    split = inputs.reported
    found, data = inputs.start.found, inputs.data
    before, after = inputs.before[split].logits, scored[split].logits
    mean = [max(1, round(float(inputs.splits.rows[split].lengths.mean())))]
    size_before = measure_size(inputs.model, found.folder, sequence_lengths=mean)
    return make_account(
        "compress",
        config,
        model=describe_model(str(config.output), work, model, found.max_length),
        parent=inputs.parent,
        data=data,
        encoded=inputs.splits.encoded,
        scored=scored,
        against=describe_against(found, split, data.task, before, after, data.labels(split)),
        notes=recorder.notes,
        seconds=time.perf_counter() - started,
        training=attempt.training,
        latency=exported.latency.after,
        size=measure_size(model, work, sequence_lengths=mean),
        export=describe_export(
            exported.config,
            inputs.before,
            exported.written,
            exported.failures,
            exported.latency,
            size_before,
        ),
        compress=CompressResult(
            goal=search.goal,
            met=failure is None,
            failure=failure,
            verdict=tuple(describe_verdict(candidates, search.goal, failure)),
            table=search.table,
            candidates=candidates,
            importance_rows=search.maker.importance_rows,
            trained=sum(one.training is not None for one in search.made),
            num_epochs=config.num_epochs,
            folder=None if model is inputs.model else str(config.output / TORCH_FOLDER),
            before={name: one.scores for name, one in inputs.before.items()},
            size_before=size_before,
            latency_before=exported.latency.before,
            speedups=exported.latency.speedups,
        ),
    )


def _score_all(
    config: CompressConfig, exported: Exported, inputs: PruningInputs, work: Path, observer: Observer
) -> dict[str, Scored]:
    """The scores of what is in ``work``; those of other rows than validation come from a fresh process."""
    assert exported.written.export is not None
    scored = dict(exported.written.proven.scored)
    others = {name: one for name, one in inputs.before.items() if name not in scored}
    if others:
        given = replace(exported.inputs, before=others)
        runtime = exported.written.export.runtime
        proven = prove(runtime, work, given, threads=config.threads, observer=observer)
        scored |= proven.scored
    return {name: scored[name] for name in inputs.before}


def _keep_torch(
    config: CompressConfig,
    attempt: Attempt,
    inputs: PruningInputs,
    work: Path,
    recorder: Recorder,
    started: float,
) -> "Classifier":
    """The chosen model in torch, in a folder of its own with a run.json; or the original, which has one."""
    from encoder.checkpoint import load_classifier

    if attempt.folder is None:
        return inputs.model
    found, data, device = inputs.start.found, inputs.data, inputs.start.device
    folder, output = work / TORCH_FOLDER, config.output / TORCH_FOLDER
    shutil.copytree(attempt.folder, folder, dirs_exist_ok=True)
    model = load_classifier(folder).to(device)
    scored = {}
    for name in inputs.before:
        recorder.stage(f"Scoring the {name} rows in torch")
        scored[name] = score_split(model, inputs.splits.rows[name], device=device, observer=recorder)
    account = make_account(
        "compress",
        config,
        model=describe_model(str(output), folder, model, found.max_length),
        parent=inputs.parent,
        data=data,
        encoded=inputs.splits.encoded,
        scored=scored,
        against=None,
        notes=recorder.notes,
        seconds=time.perf_counter() - started,
        training=attempt.training,
        size=measure_size(model, folder),
    )
    write_atomic(folder / RUN_FILE, account.model_copy(update={"output": str(output)}).to_json())
    return model
