"""An export as tables: what was written, whether it gives the same answers, how good, fast and big it is."""

import shlex
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import typer

from commands.before_and_after import add_score, add_speedups, make_before_and_after
from commands.bench_report import machine_facts
from commands.exit_codes import GATE_FAILED
from commands.progress import show_progress
from commands.result_tables import against_remarks, model_words
from commands.tables import (
    duration,
    facts_table,
    interval,
    open_console,
    print_indented,
    size,
)
from compress.latency import Latency
from encoder.wording import signed_points
from recipes.export_config import ExportConfig
from recipes.export_result import ExportResult
from recipes.result import Result

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


def run_and_show(options: ExportConfig, *, as_json: bool) -> None:
    """Export, show the result, and end with exit code 1 where the proof failed."""
    from recipes.export import export as run

    with show_progress() as progress:
        result = run(options, progress)
    assert result.export is not None
    if as_json:
        sys.stdout.write(result.to_json())
    else:
        show_export(result, open_console())
    if result.export.failures:
        sys.stdout.flush()
        for sentence in result.export.failures:
            sys.stderr.write(f"{sentence}.\n")
        sys.stderr.write(f"Nothing is in {options.output}; what failed is in {result.output}.\n")
        raise typer.Exit(GATE_FAILED)


def show_export(result: Result, console: "Console") -> None:
    """The whole of a finished export."""
    export = result.export
    assert export is not None
    console.print()
    console.print(_before_and_after(result, export))
    for line in _remarks(result, export):
        print_indented(console, line)
    console.print()
    console.print(facts_table(_facts(result, export)))
    if not export.failures and export.format == "onnx":
        folder = shlex.quote(str(result.output))
        text = '"first text" "second text"' if result.model.pair else '"some text"'
        console.print(f"\nTry it: enc predict {folder} {text}", markup=False, soft_wrap=True)


def _before_and_after(result: Result, export: ExportResult) -> "Table":
    """Scores, sizes and times, each before and after."""
    table = make_before_and_after()
    for split in result.scores:
        add_score(table, result, split, export.before[split])
        if split in result.intervals:
            table.add_row("  95% interval", "", interval(result.intervals[split]), "")
    for split, one in export.parity.items():
        difference = "not finite" if one.max_difference is None else f"{one.max_difference:.1e}"
        allowed = "" if export.tolerance is None else f"at most {export.tolerance:g} is allowed"
        table.add_row(f"difference of logits, {split}", "", difference, allowed)
        if one.agreement is not None:
            table.add_row("  rows with the same labels", "", f"{one.agreement:.2%}", "")
    if result.size is not None:
        before_bytes, after_bytes = export.size_before.bytes_on_disk, result.size.bytes_on_disk
        change = f"{after_bytes / before_bytes - 1:+.1%}"
        table.add_row("on disk", size(before_bytes), size(after_bytes), change)
    add_speedups(table, export.speedups, export.latency_before, result.latency)
    return table


def _remarks(result: Result, export: ExportResult) -> Iterator[str]:
    (split, parity), *_ = export.parity.items()
    yield (
        f"Compared on {parity.rows:,} {split} rows in batches of {export.batch_size} ({parity.padding:.0%} "
        "padding), by a process that had loaded the folder only."
    )
    if result.against is not None:
        yield from against_remarks(result.against)
    if export.precision == "int8":
        yield from _int8_remarks(export)
    latencies = [one for one in (*export.latency_before, *result.latency) if isinstance(one, Latency)]
    if not all(one.is_reliable for one in latencies):
        yield "Other work on this machine disturbed the measurement of time; repeat it when it is quiet."
    yield from (f"Failed: {sentence}." for sentence in export.failures)


def _int8_remarks(export: ExportResult) -> Iterator[str]:
    """What was tried, and what stayed in float."""
    for trial in export.trials if export.ranking else ():
        fall = "not defined" if trial.drop is None else f"{signed_points(-trial.drop)} points"
        yield f"Tried: {trial.kept_in_float} of {len(export.ranking)} parts in float: {fall}."
    if not export.kept_in_float:
        yield "All linear layers are in 8 bits; none had to stay in float."
        return
    effects = {one.part: one.effect for one in export.ranking}
    parts = (f"{short_name(part)} ({effects[part]:.2g})" for part in export.kept_in_float)
    yield f"In float, because 8 bits in them alone change logits most (by as much): {', '.join(parts)}."
    if len(export.kept_in_float) == len(export.ranking):
        yield "Nothing is in 8 bits any more: not worth it; export in fp32."


def short_name(part: str) -> str:
    """``layer 3 attention`` of ``encoder.layers.3.attention``."""
    return part.removeprefix("encoder.").replace("layers.", "layer ").replace(".", " ").replace("_", "-")


def _facts(result: Result, export: ExportResult) -> Iterator[tuple[str, str]]:
    source = "" if result.parent is None else result.parent.source
    yield "model", model_words(source, result.model)
    if export.format == "onnx":
        yield "graph", f"{export.form}, {export.precision}, opset {export.opset}"
        yield "takes", f"{', '.join(export.inputs)}; its logits go through {export.activation}"
    if export.fused:
        counts = ", ".join(f"{amount} × {name}" for name, amount in export.fused.items())
        yield "fused", f"{counts}; as many as its layers call for"
    devices = {one.device: one.device_name for one in result.latency if isinstance(one, Latency)}
    threads = next((one.threads for one in result.latency if isinstance(one, Latency)), None)
    yield from machine_facts(result.machine, devices, threads)
    yield "whole run", duration(result.seconds)
    yield "failed, kept in" if export.failures else "saved in", str(result.output)
