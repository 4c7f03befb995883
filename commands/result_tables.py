"""Results as tables: what was read, how good and how fast the model is, where it lies."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from commands.tables import (
    duration,
    encoder_words,
    facts_table,
    interval,
    make_table,
    number,
    print_indented,
    size,
)
from compress.latency import Latency, Unavailable
from encoder.metrics import METRIC_TITLES as METRIC_TITLES  # where it was before
from encoder.wording import counted
from recipes.encoders import EncoderResult
from recipes.result import Against, ModelResult, Result, TrainingResult
from recipes.trained import LATENCY_BATCH_SIZES

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from encoder.data_report import DataReport, SplitReport

# Of more classes than this only the most and the least frequent are listed.
MANY_CLASSES, MOST_FREQUENT, LEAST_FREQUENT = 12, 6, 3
# What took less is not worth a line.
SHOWN_SECONDS = 0.1


def show_data(report: "DataReport", console: "Console") -> None:
    """What was read, and everything about it that the user may want to mend."""
    columns = ", ".join(f"{role} from {name!r}" for role, name in report.columns.items())
    for line in (f"Task: {report.task}.", f"Columns: {columns}.", *report.notes):
        print_indented(console, line)
    console.print(_splits_table(report.splits))
    for name, split in report.splits.items():
        for line in _remarks(split):
            print_indented(console, f"{name}: {line}")
    for overlap in report.overlaps:
        conflicts = f", {overlap.conflicts:,} of them with another label" if overlap.conflicts else ""
        found = f"{counted(overlap.rows, 'row')} with a text that is also in {overlap.first}{conflicts}"
        print_indented(console, f"{overlap.second}: {found}; scores on {overlap.second} count them")


def show_result(result: Result, console: "Console") -> None:
    """The whole of a finished run."""
    console.print()
    console.print(_scores_table(result))
    if result.against is not None:
        for line in against_remarks(result.against):
            print_indented(console, line)
        console.print()
    if result.latency:
        console.print(_latency_table(result.latency))
        for line in _latency_remarks(result.latency):
            print_indented(console, line)
        console.print()
    console.print(facts_table(_facts(result)))


def scores_line(scores: Mapping[str, float | None]) -> str:
    """``accuracy 0.9730, macro F1 0.9721, MCC 0.9662``."""
    return ", ".join(f"{METRIC_TITLES.get(name, name)} {number(value)}" for name, value in scores.items())


def _splits_table(splits: Mapping[str, "SplitReport"]) -> "Table":
    table = make_table("rows", *splits)
    table.add_row("in all", *(f"{split.rows:,}" for split in splits.values()))
    if any(split.label_range for split in splits.values()):
        for row in ("smallest", "mean", "largest"):
            ranges = [split.label_range for split in splits.values()]
            table.add_row(f"{row} label", *(f"{getattr(found, row):g}" if found else "–" for found in ranges))
    for name in _shown_classes(splits):
        if name is None:
            hidden = max(len(split.classes) for split in splits.values()) - MOST_FREQUENT - LEAST_FREQUENT
            table.add_row(f"… {hidden} more", *("…" for _ in splits))
        else:
            table.add_row(name, *(f"{split.classes.get(name, 0):,}" for split in splits.values()))
    if any(split.rows_without_label for split in splits.values()):
        table.add_row("no label", *(f"{split.rows_without_label:,}" for split in splits.values()))
    return table


def _shown_classes(splits: Mapping[str, "SplitReport"]) -> list[str | None]:
    """Class names in their order; of many, the most and the least frequent, ``None`` between them."""
    totals: dict[str, int] = {}
    for split in splits.values():
        for name, rows in split.classes.items():
            totals[name] = totals.get(name, 0) + rows
    if len(totals) <= MANY_CLASSES:
        return list(totals)
    by_rows = sorted(totals, key=lambda name: -totals[name])
    return [*by_rows[:MOST_FREQUENT], None, *by_rows[-LEAST_FREQUENT:]]


def _remarks(split: "SplitReport") -> Iterable[str]:
    for dropped in split.dropped:
        examples = f" ({', '.join(dropped.examples)}{', …' if dropped.rows > len(dropped.examples) else ''})"
        why = f"{dropped.reason}{examples if dropped.examples else ''}"
        yield f"{counted(dropped.rows, 'row')} left out: {why}"
    if split.duplicates:
        yield f"{counted(split.duplicates, 'row')} with the text of an earlier row"
    if split.conflicts:
        yield f"{counted(split.conflicts, 'text')} with more than one label"


def _scores_table(result: Result) -> "Table":
    """The main metric comes first, with its interval."""
    metrics = sorted(next(iter(result.scores.values()), {}), key=lambda name: name != result.main_metric)
    titles = [METRIC_TITLES.get(name, name) for name in metrics]
    if result.intervals:
        titles.insert(1, "95% interval")
    table = make_table("score", *titles, "rows")
    lines = [(split, split, scores, result.intervals.get(split)) for split, scores in result.scores.items()]
    if (other := result.against) is not None:
        name = f"{other.split}, {other.source}" if len(lines) > 1 else other.source
        lines.append((name, other.split, other.scores, None))
    for name, split, scores, found in lines:
        cells = [number(scores.get(metric)) for metric in metrics]
        if result.intervals:
            cells.insert(1, interval(found) if name == split else "")
        report = result.data.report.splits.get(split)
        table.add_row(name, *cells, f"{report.rows:,}" if report else "")
    return table


def against_remarks(against: Against) -> Iterable[str]:
    """What the comparison allows to claim, and the numbers behind it."""
    yield f"{against.verdict[:1].upper()}{against.verdict[1:]}."
    test, one = against.mcnemar, against.difference
    if test is not None and test.only_first == test.only_second == 0:
        yield "Both are right on the same rows."
        return
    if one is not None:
        name = METRIC_TITLES.get(one.metric, one.metric)
        yield f"Difference in {name}: {one.difference:+.4f}, 95% interval {one.low:+.4f} to {one.high:+.4f}."
    if test is not None:
        yield (
            f"{counted(test.only_first, 'row')} right here alone, {test.only_second:,} there alone; "
            f"McNemar's exact test: p = {test.p_value:.2g}."
        )


def _latency_table(latency: Sequence[Latency | Unavailable]) -> "Table":
    table = make_table("latency", "batch", "tokens a row", "p50 ms", "p95 ms", "rows/s")
    for one in latency:
        if isinstance(one, Unavailable):
            continue
        table.add_row(
            f"{one.device}, {one.runtime}",
            str(one.shape.batch_size),
            f"{one.shape.mean_tokens:.0f}",
            f"{one.p50_ms:.2f}",
            f"{one.p95_ms:.2f}",
            f"{one.rows_per_s:,.0f}",
        )
    return table


def _latency_remarks(latency: Sequence[Latency | Unavailable]) -> Iterable[str]:
    lines: dict[str, None] = {}
    for one in latency:
        if isinstance(one, Unavailable):
            lines[f"{one.device}: {one.reason}"] = None
        else:
            threads = f", {counted(one.threads, 'thread')}" if one.device == "cpu" else ""
            lines[f"{one.device}: {one.device_name}{threads}; on rows of the data, in their own lengths"] = (
                None
            )
    if few := [
        one.shape.batch_size
        for one in latency
        if isinstance(one, Latency) and one.shape.batch_size not in LATENCY_BATCH_SIZES
    ]:
        lines[
            f"There are {few[0]} rows to time: the larger batch has these, not {LATENCY_BATCH_SIZES[-1]}."
        ] = None
    if any(isinstance(one, Latency) and not one.is_reliable for one in latency):
        lines["Other work on this machine disturbed the measurement; repeat it when it is quiet."] = None
    return lines


def _facts(result: Result) -> Iterable[tuple[str, str]]:
    source = result.parent.source if result.parent else result.model.source
    yield "model", model_words(source, result.model)
    yield "data", f"{result.data.source}: {result.data.report.task.partition(':')[0]}"
    if result.training is not None:
        yield from training_facts(result.training)
    if result.size is not None:
        yield (
            "size",
            f"{size(result.size.bytes_on_disk)} on disk, {result.size.parameters:,} parameters, "
            f"{result.size.parameters_without_embeddings:,} of them not embeddings",
        )
    yield time_fact(result.seconds, result.training)
    if result.output is not None:
        yield "saved in", result.output


def model_words(source: str, model: ModelResult | EncoderResult) -> str:
    """``models/e5: bert, 12 layers, hidden size 384, post-norm``."""
    words = encoder_words(model.num_hidden_layers, model.hidden_size, model.variant)
    return f"{source}: {model.family}, {words}"


def time_fact(seconds: float, training: TrainingResult | None) -> tuple[str, str]:
    """What the run took, or what of it came after an interruption."""
    if training is None or training.resumed_from_step is None:
        return "whole run", duration(seconds)
    return "this run", f"{duration(seconds)}, without what was done before the interruption"


def training_facts(training: TrainingResult) -> Iterable[tuple[str, str]]:
    """How a training went, by name."""
    share = training.trainable_parameters / training.total_parameters
    yield (
        "trained",
        f"{training.trainable_parameters:,} of {training.total_parameters:,} parameters ({share:.1%})",
    )
    if "nothing" not in training.frozen.lower():
        yield "frozen", training.frozen.removeprefix("Frozen: ")
    yield (
        "training",
        f"{duration(training.seconds)}, {training.rows_per_s:,.0f} rows/s, {training.precision} "
        f"on {training.device} with {counted(training.threads, 'thread')}"
        + ("" if training.resumed_from_step is None else ", with what was done before the interruption"),
    )
    if training.frozen_seconds is not None and training.frozen_seconds >= SHOWN_SECONDS:
        yield "frozen layers", f"{duration(training.frozen_seconds)}, computed once, before the training"
    if len(training.epochs) > 1:
        yield (
            "kept",
            f"epoch {training.best_epoch} of {len(training.epochs)}, by validation {training.best_metric}",
        )
    if training.peak_memory_bytes is not None:
        gpu = training.device_memory_bytes
        yield "peak memory", size(training.peak_memory_bytes) + (f", {size(gpu)} on the GPU" if gpu else "")
