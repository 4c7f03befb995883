"""A compression as tables: what parts take on this machine, the candidates, and the model that was made."""

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

from commands.result_tables import METRIC_TITLES, show_result
from commands.tables import make_table, number, print_indented, size
from compress.latency_table import LatencyTable
from encoder.wording import counted, signed_points
from recipes.compress_result import Candidate, CompressResult
from recipes.compress_verdict import times_as_fast
from recipes.result import Result

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


def show_compression(result: Result, console: "Console") -> None:
    """The whole of a finished compression."""
    found = result.compress
    assert found is not None
    console.print()
    console.print(_times(found.table))
    for line in _about_table(found):
        print_indented(console, line)
    console.print()
    console.print(_candidates(result, found))
    for line in _about_candidates(found):
        print_indented(console, line)
    console.print()
    for line in found.verdict:
        print_indented(console, line)
    show_result(result, console)
    folder = shlex.quote(str(result.output))
    if found.folder is not None:
        console.print(f"\nIn torch, to go on with: {found.folder}", markup=False, soft_wrap=True)
    console.print(f"\nCompare it: enc bench {_source(result)} {folder}", markup=False, soft_wrap=True)


def _source(result: Result) -> str:
    return "" if result.parent is None else shlex.quote(result.parent.source)


def _times(table: LatencyTable) -> "Table":
    """ms of the parts, for each precision; of heads and neurons, for how many stay."""
    first = next(iter(table.times.values()))
    heads = [counted(amount, "head") for amount, _ in first.heads[1:]]
    neurons = [counted(amount, "neuron") for amount, _ in first.neurons[1:]]
    made = make_table("ms a layer", *heads, *neurons, "the rest of it", "all but layers")
    for precision, times in table.times.items():
        cells = [*(ms for _, ms in (*times.heads[1:], *times.neurons[1:])), times.base_ms, times.rest_ms]
        made.add_row(precision, *(f"{ms:.3f}" for ms in cells))
    return made


def _about_table(found: CompressResult) -> Iterator[str]:
    table, goal = found.table, found.goal
    yield (
        f"For one row of {counted(table.tokens, 'token')}, ONNX Runtime on {table.device_name}, "
        f"{counted(table.threads, 'thread')}; of each the shortest runs. So measured the original takes "
        f"{goal.baseline_ms:.2f} ms in torch in fp32; candidates are planned for {goal.limit_ms:.2f} ms."
    )
    if not table.reliable:
        yield "Other work on this machine disturbed these times."


def _candidates(result: Result, found: CompressResult) -> "Table":
    metric = METRIC_TITLES.get(result.main_metric, result.main_metric)
    made = make_table("candidate", metric, "points", "table ms", "p50 ms", "faster", "size", "")
    made.columns[-1].justify = "left"
    speeds = times_as_fast(found.candidates, found.goal)
    for ratio, one in sorted(zip(speeds, found.candidates, strict=True), key=lambda pair: -pair[0]):
        measured = "" if one.latency_ms is None else f"{one.latency_ms:.2f}" + (" *" if one.disturbed else "")
        made.add_row(
            one.name,
            number(one.score),
            "–" if one.drop is None else signed_points(-one.drop),
            f"{one.predicted_ms:.2f}",
            measured,
            f"{ratio:.1f}×",
            size(one.size_bytes),
            _marks(one),
        )
    return made


def _marks(one: Candidate) -> str:
    marks = {"chosen": one.chosen, "Pareto": one.pareto, "failed": bool(one.failures)}
    return ", ".join(name for name, is_so in marks.items() if is_so)


def _about_candidates(found: CompressResult) -> Iterator[str]:
    rows = {one.rows for one in found.candidates}
    yield (
        f"Scores of {' or '.join(f'{number:,}' for number in sorted(rows))} validation rows, points against "
        "the original on the same ones. p50: exported, and timed in turns with the original; faster: in "
        "those turns, elsewhere by the table, as right as it was for what was timed. Pareto: no other loses "
        "as little and takes as little time."
    )
    if found.trained:
        epochs = counted(found.num_epochs, "epoch")
        yield f"{counted(found.trained, 'candidate')} trained for {epochs} at most."
    if any(one.disturbed for one in found.candidates):
        yield "*: other work on this machine disturbed the measurement; repeat it when it is quiet."
