"""Write a fine-tuned model in a form that can be deployed, and prove it on the user's own rows.

All that is cheap comes first: a wrong option, a label that does not fit or a folder that cannot be made ends
the run before anything is computed. The folder appears under its name only when it is complete and proven;
one that is not good enough is called NAME.failed, and no command of enc opens it.
"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compress.deployed import CARD_FILE, Export
from compress.size import Size, measure_size
from encoder.files import write_atomic
from encoder.metrics import main_metric
from encoder.model_folder import FAILED_FILE
from recipes.account import make_account
from recipes.against import describe_against
from recipes.export_config import ExportConfig
from recipes.export_inputs import ExportInputs, look_at_model, read_inputs
from recipes.export_int8 import write_int8
from recipes.export_onnx import make_graph, write_graph_folder
from recipes.export_proof import BATCH_ROWS, Proven, prove
from recipes.export_remarks import remarks_on
from recipes.export_result import ExportResult
from recipes.export_vocabulary import prune_inputs_vocabulary
from recipes.model_card import make_card
from recipes.observer import Observer, Recorder, Silent
from recipes.result import RUN_FILE, Result, describe_model, describe_parent
from recipes.scoring import Scored
from recipes.side_by_side import BothLatencies, measure_in_turns

# Scores of a few rows are sums of few fractions; this much is their rounding and no loss.
ROUNDING = 1e-9


def export(config: ExportConfig, observer: Observer | None = None) -> Result:
    """The folder of ``config.output``, and what is known of it; ``Result.export.failures``: why it failed.

    Raises:
        ConfigError, DataError, CheckpointError, ExportError: before anything is computed, with all that is
        wrong of a kind.
    """
    started = time.perf_counter()
    recorder = Recorder(observer or Silent())
    start = look_at_model(config, recorder)
    inputs = read_inputs(config, start, recorder)
    changed = inputs
    if start.vocabulary is not None:
        changed = prune_inputs_vocabulary(inputs, start.vocabulary, recorder)
    with start.folder.discarded_on_error():
        work = start.folder.open()
        made = _make(config, changed, work, recorder)
        result = _describe(config, (inputs, changed), made, work, recorder, started)
        write_atomic(work / RUN_FILE, result.to_json())
        write_atomic(work / CARD_FILE, make_card(result))
        if made.failures:
            write_atomic(work / FAILED_FILE, "\n".join(made.failures) + "\n")
    if made.failures:
        start.folder.fail()
    else:
        start.folder.finish()
    return result


@dataclass(frozen=True)
class Written:
    """What is in the folder, and how it did; ``export`` is ``None`` where it is no graph.

    ``more`` are those parts of an ``ExportResult`` that say how it was made.
    """

    proven: Proven
    export: Export | None = None
    more: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class _Made:
    """What was written, why it must not be used, and how fast it is."""

    written: Written
    failures: tuple[str, ...]
    latency: BothLatencies


def _make(config: ExportConfig, inputs: ExportInputs, work: Path, recorder: Recorder) -> _Made:
    write = write_graph if config.format == "onnx" else _write_standard
    written = write(config, inputs, work, recorder)
    failures = tuple(find_failures(config, written.proven, main_metric(inputs.data.task)))
    latency = BothLatencies()
    if config.latency and config.format == "onnx" and not failures:
        recorder.stage("Measuring latency, in turns with the model before")
        latency = measure_in_turns(
            inputs.start.found.folder,
            work,
            written.proven.rows[inputs.reported],
            threads=config.threads,
            observer=recorder,
        )
    for note in remarks_on(config, written.export, latency):
        recorder.note(note)
    return _Made(written, failures, latency)


def _write_standard(config: ExportConfig, inputs: ExportInputs, work: Path, observer: Observer) -> Written:
    from compress.standard_shape import with_zeros
    from encoder.checkpoint import save_classifier

    observer.stage("Writing the standard folder")
    save_classifier(with_zeros(inputs.model), inputs.tokenizer, work)
    return Written(prove("torch-fp32", work, inputs, threads=config.threads, observer=observer))


def write_graph(config: ExportConfig, inputs: ExportInputs, work: Path, observer: Observer) -> Written:
    """Write the graph that ``config`` asks for into ``work``, with all it needs, and prove it there."""
    graph = make_graph(config, inputs, observer)
    counts = {"fused": dict(graph.fused), "fused_expected": dict(graph.fused_expected)}
    if config.precision == "int8":
        found = write_int8(config, inputs, graph, work, observer)
        choice = {"kept_in_float": found.kept, "trials": found.trials, "ranking": found.ranking}
        return Written(found.proven, found.export, counts | choice)
    export = write_graph_folder(config, inputs, graph.proto, work)
    proven = prove(export.runtime, work, inputs, threads=config.threads, observer=observer)
    return Written(proven, export, counts)


def find_failures(config: ExportConfig, proven: Proven, metric: str) -> Iterator[str]:
    """Why the folder must not be used, a sentence each."""
    for name, parity in proven.parity.items():
        rows = f"{parity.rows:,} {name} rows"
        if parity.max_difference is None:
            yield f"Logits of the {rows} are not finite"
        elif config.compares_logits and parity.max_difference > config.tolerance:
            yield (
                f"Logits of the {rows} differ from torch's by up to {parity.max_difference:.2g}; --tolerance "
                f"allows {config.tolerance:g}"
            )
    if proven.drop is None:
        yield f"The {metric} is not defined any more"
    elif proven.drop * 100 > config.max_drop + ROUNDING:
        yield f"The {metric} falls by {proven.drop * 100:.2f} points; --max-drop allows {config.max_drop:g}"


def _describe(
    config: ExportConfig,
    inputs: tuple[ExportInputs, ExportInputs],
    made: _Made,
    work: Path,
    recorder: Recorder,
    started: float,
) -> Result:
    """The account of the run; ``inputs`` are as they were read, and as they were written."""
    (before, after), proven = inputs, made.written.proven
    found, data, folder, reported = before.start.found, before.data, before.start.folder, before.reported
    output = str(folder.failed if made.failures else folder.path)
    against = None
    if all(one.max_difference is not None for one in proven.parity.values()):
        logits = (before.before[reported].logits, proven.scored[reported].logits)
        against = describe_against(found, reported, data.task, *logits, data.labels(reported))
    mean = [max(1, round(float(proven.rows[reported].lengths.mean())))]
    account = make_account(
        "export",
        config,
        model=describe_model(output, work, after.model, found.max_length),
        parent=describe_parent(config.model, found.folder),
        data=data,
        encoded=before.splits.encoded,
        scored=proven.scored,
        against=against,
        notes=recorder.notes,
        seconds=time.perf_counter() - started,
        latency=made.latency.after,
        size=measure_size(after.model, work, sequence_lengths=mean),
        export=describe_export(
            config,
            before.before,
            made.written,
            made.failures,
            made.latency,
            measure_size(before.model, found.folder, sequence_lengths=mean),
        ),
    )
    return account.model_copy(update={"output": output})


def describe_export(
    config: ExportConfig,
    before: Mapping[str, Scored],
    written: Written,
    failures: tuple[str, ...],
    latency: BothLatencies,
    size_before: Size,
) -> ExportResult:
    """The part of run.json on what was ``written``; ``before`` is the model that it is compared with."""
    graph = {} if written.export is None else written.export.model_dump()
    return ExportResult(
        format=config.format,
        precision=config.precision,
        form=graph.get("form"),
        opset=graph.get("opset"),
        inputs=graph.get("inputs", ()),
        activation=graph.get("activation"),
        tolerance=config.tolerance if config.compares_logits else None,
        max_drop=config.max_drop,
        batch_size=BATCH_ROWS,
        parity=dict(written.proven.parity),
        before={name: one.scores for name, one in before.items()},
        drop=written.proven.drop,
        failures=failures,
        size_before=size_before,
        latency_before=latency.before,
        speedups=latency.speedups,
        **written.more,
    )
