"""The result of `enc bench` as tables."""

from collections.abc import Iterable, Sequence
from string import ascii_uppercase
from typing import TYPE_CHECKING

from commands.tables import duration, facts_table, make_table, print_indented, size
from compress.contention import is_disturbed
from compress.latency import Latency, Unavailable
from compress.machine import Machine
from compress.profile import ProfileRow
from compress.workload import Shape
from encoder.wording import counted
from recipes.measurements import BenchResult, MeasuredTexts

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

VERSIONS = ("enc-encoder", "torch", "onnxruntime")


def show_bench(result: BenchResult, console: "Console") -> None:
    """Latency, ratios, size; and where and how it was measured."""
    console.print()
    if len(result.models) > 1:
        legend = ((letter(number), one.model.source) for number, one in enumerate(result.models))
        console.print(facts_table(legend))
        console.print()
    for runtime, device in dict.fromkeys((row.latency.runtime, row.latency.device) for row in result.rows):
        _show_runtime(result, runtime, device, console)
    for device, number, runtime in dict.fromkeys(
        (one.device, one.baseline, one.baseline_runtime) for one in result.ratios
    ):
        console.print(_ratio_table(result, device, number, runtime))
    console.print(_size_table(result))
    for line in _remarks(result):
        print_indented(console, line)
    console.print()
    console.print(facts_table(machine_facts(result.machine, *_measured_on(result))))
    console.print(facts_table([("whole run", duration(result.seconds)), *_saved(result.output)]))


def letter(number: int) -> str:
    """A, B … Z, A2, B2 …: a short name for a model in tables."""
    round_, place = divmod(number, len(ascii_uppercase))
    return ascii_uppercase[place] + (str(round_ + 1) if round_ else "")


def _show_runtime(result: BenchResult, runtime: str, device: str, console: "Console") -> None:
    rows = [row for row in result.rows if (row.latency.runtime, row.latency.device) == (runtime, device)]
    title = f"{runtime} on {device}"
    if all(isinstance(row.latency, Unavailable) for row in rows):
        reasons = {row.latency.reason for row in rows if isinstance(row.latency, Unavailable)}
        print_indented(console, f"{title}: {', '.join(reasons)}")
        console.print()
        return
    named = len(result.models) > 1
    heads = ["batch", "tokens", "p50 ms", "p95 ms", "p99 ms", "rows/s", "tokens/s", "noise"]
    table = make_table(*(["model"] if named else []), *heads, title=title, texts=int(named))
    found = [(row.model, row.latency) for row in rows if isinstance(row.latency, Latency)]
    shapes = list(dict.fromkeys(str(latency.shape) for _, latency in found))
    for model, one in sorted(found, key=lambda pair: (shapes.index(str(pair[1].shape)), pair[0])):
        table.add_row(
            *([letter(model)] if named else []),
            str(one.shape.batch_size),
            describe_tokens(one.shape),
            *(milliseconds(value) for value in (one.p50_ms, one.p95_ms, one.p99_ms)),
            per_second(one.rows_per_s),
            per_second(one.tokens_per_s),
            f"{one.noise:.1%}" + ("" if one.is_reliable else " *"),
        )
    console.print(table)


def _ratio_table(result: BenchResult, device: str, baseline: int, baseline_runtime: str) -> "Table":
    """Everything that was compared with one baseline."""
    title = f"compared with {letter(baseline)}, {baseline_runtime} on {device}"
    table = make_table("", "batch", "tokens", "speed-up", "95% interval", "", title=title)
    for one in result.ratios:
        if (one.device, one.baseline, one.baseline_runtime) == (device, baseline, baseline_runtime):
            table.add_row(
                f"{letter(one.model)}, {one.runtime}",
                str(one.shape.batch_size),
                describe_tokens(one.shape),
                f"{one.speedup.ratio:.2f}×",
                f"{one.speedup.low:.2f}–{one.speedup.high:.2f}",
                one.verdict,
            )
    return table


def _size_table(result: BenchResult) -> "Table":
    """Models side by side where there are several; what is not known of one is a dash."""
    sizes = [one.size for one in result.models]
    table = make_table("size", *(letter(number) if len(sizes) > 1 else "" for number in range(len(sizes))))
    table.add_row("parameters", *(f"{one.parameters:,}" for one in sizes))
    table.add_row("  without embeddings", *(f"{one.parameters_without_embeddings:,}" for one in sizes))
    for length in sizes[0].macs_per_token:
        cells = (f"{one.macs_per_token[length] / 1e6:,.2f} M" for one in sizes)
        table.add_row(f"MACs per token, {length:,} tokens", *cells)
    table.add_row("on disk", *(size(one.bytes_on_disk) for one in sizes))
    peaks: dict[str, dict[int, int]] = {}
    for row in result.rows:
        one = row.latency
        if isinstance(one, Latency):
            for what, amount in (
                (f"memory, {one.runtime} on {one.device}", one.peak_memory_bytes),
                (f"GPU memory, {one.runtime}", one.device_memory_bytes),
            ):
                if amount is not None:
                    seen = peaks.setdefault(what, {})
                    seen[row.model] = max(seen.get(row.model, 0), amount)
    for what, by_model in peaks.items():
        cells = (size(by_model[number]) if number in by_model else "–" for number in range(len(sizes)))
        table.add_row(what, *cells)
    return table


def _remarks(result: BenchResult) -> Iterable[str]:
    latencies = [row.latency for row in result.rows if isinstance(row.latency, Latency)]
    if result.data is not None:
        yield describe_texts(result.data)
    padding = max((one.shape.padding for one in latencies), default=0.0)
    if padding > 0:
        yield (
            "~ tokens: rows of the data, on average. torch computes a batch without padding; ONNX Runtime "
            f"pads it to its longest row, which makes up to {padding:.0%} of what it computes here."
        )
    if latencies:
        runs = min(one.runs for one in latencies)
        yield f"Each runtime in a process of its own, warmed up, then at least {counted(runs, 'run')} a line."
        yield "noise: how far the medians of five blocks of a line's runs lie apart."
    if result.ratios:
        launches = result.ratios[0].speedup.launches
        yield (
            f"speed-up: above 1 is faster. Measured in turns in {launches} launches; an interval "
            "that holds 1 allows no claim."
        )
    yield from unreliable_remark(latencies)


def unreliable_remark(measured: Sequence[Latency] | Sequence[ProfileRow]) -> Iterable[str]:
    """What the asterisk means, where there is one."""
    reasons = []
    waited = max((one.cpu_wait or 0.0 for one in measured), default=0.0)
    if is_disturbed(waited):
        reasons.append(f"other processes had the cores up to {waited:.0%} of the time")
    if not all(one.steady for one in measured):
        reasons.append("runs were not steady after the warm-up")
    if reasons:
        yield f"*: not to be relied on: {' and '.join(reasons)}. Repeat it when the machine is quiet."


def describe_texts(texts: MeasuredTexts) -> str:
    """A sentence on the lengths of the texts that were measured on."""
    lost = counted(texts.tokens_lost, "token")
    cut = f"; {counted(texts.rows_cut, 'row')} cut by {lost} in all" if texts.rows_cut else ""
    return (
        f"data: {texts.rows:,} {texts.split} rows of {texts.source}; tokens a row: median "
        f"{texts.median_tokens:.0f}, 95% up to {texts.p95_tokens:.0f}, longest {texts.max_tokens:,}{cut}."
    )


def machine_facts(machine: Machine, devices: dict[str, str], threads: int | None) -> list[tuple[str, str]]:
    """On what was measured; ``devices`` are names by device."""
    facts = []
    for device, name in devices.items():
        if device == "cpu":
            used = "" if threads is None else f", {counted(threads, 'thread')}"
            name = f"{name}{used} of {counted(machine.physical_cores, 'core')}"
        facts.append((device, name))
    if "cpu" in devices:
        facts.append(("cpu flags", " ".join(machine.cpu_flags) or "none that matter"))
    versions = [f"{name} {machine.versions[name]}" for name in VERSIONS if name in machine.versions]
    facts.append(("versions", ", ".join([*versions, f"Python {machine.python}"])))
    return facts


def _measured_on(result: BenchResult) -> tuple[dict[str, str], int | None]:
    found = [row.latency for row in result.rows if isinstance(row.latency, Latency)]
    threads = next((one.threads for one in found if one.device == "cpu"), None)
    return {one.device: one.device_name for one in found}, threads


def _saved(output: str | None) -> list[tuple[str, str]]:
    return [] if output is None else [("saved in", output)]


def describe_tokens(shape: Shape) -> str:
    """``128``, or on data ``~93``, the mean."""
    return f"~{shape.mean_tokens:.0f}" if shape.sequence_length is None else str(shape.sequence_length)


def milliseconds(value: float) -> str:
    """Three digits that count, at most two decimals."""
    return f"{value:.2f}" if value < 100 else f"{value:,.0f}"


def per_second(value: float) -> str:
    """Whole numbers, but for the slowest; millions as ``12.35 M``."""
    if value >= 1e6:
        return f"{value / 1e6:.2f} M"
    return f"{value:.1f}" if value < 10 else f"{value:,.0f}"
