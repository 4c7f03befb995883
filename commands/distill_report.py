"""Teacher, student and control side by side, and then the model that was made."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from commands.before_and_after import say_speedup
from commands.result_tables import show_result
from commands.tables import duration, interval, make_table, number, print_indented, size
from compress.latency import Latency
from encoder.metrics import LOWER_IS_BETTER, METRIC_TITLES
from encoder.wording import counted, signed_points
from recipes.distill_result import ControlResult, DistillResult
from recipes.pruning_result import SpeedupResult
from recipes.result import Result

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

LOSSES = {
    "soft": "the teacher's answers",
    "hard": "labels",
    "hidden": "hidden states",
    "relations": "relations between tokens",
    "embeddings": "embeddings",
}


def show_distillation(result: Result, console: "Console") -> None:
    """The whole of a finished distillation."""
    found = result.distillation
    assert found is not None
    console.print()
    for line in _how(result, found):
        print_indented(console, line)
    console.print()
    console.print(_side_by_side(result, found))
    for line in _remarks(result, found):
        print_indented(console, line)
    show_result(result, console)


def _how(result: Result, found: DistillResult) -> Iterator[str]:
    start = "from random numbers, or from a model of its own"
    if found.init_layers is not None:
        start = f"from the teacher's layers {', '.join(map(str, found.init_layers))}"
    steps = f", in steps of {' → '.join(map(str, found.sizes))} layers" if len(found.sizes) > 1 else ""
    yield (
        f"{found.teacher.num_hidden_layers} layers taught {result.model.num_hidden_layers}, which started "
        f"{start}{steps}."
    )
    learnt = ", ".join(f"{LOSSES[name]} ({weight:g})" for name, weight in found.weights.items())
    more = f"; {counted(found.unlabeled_rows, 'text')} without labels" if found.unlabeled_rows else ""
    yield f"Learnt from: {learnt}{more}."


def _side_by_side(result: Result, found: DistillResult) -> "Table":
    """Scores, agreement, sizes and times. The control has the student's shape, hence its size and times."""
    control = found.control
    names = ("teacher", "student", *(("control",) if control else ()))
    table = make_table("", *names, "student to teacher", title="")
    metric = result.main_metric
    title = METRIC_TITLES.get(metric, metric)
    for split, scores in result.scores.items():
        teacher, student = found.teacher.scores[split].get(metric), scores.get(metric)
        cells = [number(teacher), number(student)]
        spans = [interval(found.teacher.intervals.get(split)), interval(result.intervals.get(split))]
        shares = ["", _share(found.agreement.get(split))]
        if control:
            cells.append(number(control.scores[split].get(metric)))
            spans.append(interval(control.intervals.get(split)))
            shares.append(_share(control.agreement.get(split)))
        table.add_row(f"{title}, {split}", *cells, _kept(metric, teacher, student))
        table.add_row("  95% interval", *spans, "")
        table.add_row("  agreement with the teacher", *shares, "")
    same = ["="] if control else []
    one, other = found.teacher.size, result.size
    if other is not None:
        table.add_row(
            "parameters", f"{one.parameters:,}", f"{other.parameters:,}", *same,
            f"{other.parameters / one.parameters:.1%}",
        )  # fmt: skip
        table.add_row(
            "on disk", size(one.bytes_on_disk), size(other.bytes_on_disk), *same,
            f"{other.bytes_on_disk / one.bytes_on_disk:.1%}",
        )  # fmt: skip
    for speedup in found.speedups:
        name = f"{speedup.device}, batch {speedup.shape.batch_size}, p50"
        table.add_row(name, *_times(result, found, speedup), *same, say_speedup(speedup))
    return table


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}"


def _kept(metric: str, teacher: float | None, student: float | None) -> str:
    """How much of the teacher's score is left, and the points that are not."""
    if teacher is None or student is None:
        return ""
    if metric in LOWER_IS_BETTER or teacher <= 0:
        return f"{student - teacher:+.4f}"
    return f"{student / teacher:.1%}, {signed_points(student - teacher)} points"


def _times(result: Result, found: DistillResult, speedup: SpeedupResult) -> Iterator[str]:
    for latencies in (found.teacher.latency, result.latency):
        times = (
            one
            for one in latencies
            if isinstance(one, Latency) and (one.device, one.shape) == (speedup.device, speedup.shape)
        )
        yield next((f"{one.p50_ms:.2f} ms" for one in times), "–")


def _remarks(result: Result, found: DistillResult) -> Iterator[str]:
    if found.control is None:
        yield "No control: what the teacher was worth is not known."
    else:
        yield from _against_control(found.control)
    place = "disk" if found.on_disk else "memory"
    kept = f", {size(found.target_bytes)} in {place}" if found.target_bytes else ""
    yield f"The teacher answered once, in {duration(found.target_seconds)}{kept}."
    if result.training is not None and found.control is not None and found.control.seconds > 0:
        ratio = (found.target_seconds + result.training.seconds) / found.control.seconds
        yield f"With that, distilling took {ratio:.2f} times what training on labels alone did."


def _against_control(control: ControlResult) -> Iterator[str]:
    numbers = ""
    if control.difference is not None:
        one = control.difference
        numbers = f": {one.difference:+.4f}, 95% interval {one.low:+.4f} to {one.high:+.4f}"
    yield "The control is the same student, started and trained alike, from labels alone."
    yield f"Student and control on {control.split} rows: {control.verdict}{numbers}."
