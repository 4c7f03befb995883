"""The tables of the page of a report, as HTML; and the few numbers above them."""

import html
from collections.abc import Mapping, Sequence

from commands.bench_report import describe_tokens, milliseconds, per_second
from commands.tables import number, size
from encoder.metrics import LOWER_IS_BETTER, METRIC_TITLES
from encoder.wording import signed_points
from recipes.report import Report
from recipes.report_headline import say_interval
from recipes.report_parts import LatencyPart, MachinePart
from recipes.report_steps import Step

MARKS = {
    "finetune": "k1",
    "freeze-sweep": "k1",
    "prune-heads": "k2",
    "prune-neurons": "k2",
    "drop-layers": "k2",
    "compress": "k2",
    "distill": "k3",
    "export": "k4",
}


BUSY = '<p class="note">*: measured while the machine was busy with other things.</p>'


def figures_of(report: Report) -> str:
    """The end of the line in four numbers, each beside what it was."""
    headline = report.headline
    if headline is None:
        return ""
    first, end = report.step(headline.first), report.step(headline.step)
    alone = first.number == end.number
    boxes: list[tuple[str, str, str, list[str]]] = []
    if end.score is not None:
        title = METRIC_TITLES.get(end.score.metric, end.score.metric)
        interval = _interval(end)
        was = f"was {number(first.score.value)}" if first.score is not None and not alone else ""
        told = [was, interval and f"95% interval {interval}"]
        boxes.append((title, number(end.score.value), "", told))
    if end.p50_ms is not None:
        batch = f", batch {report.timed.batch_size}" if report.timed else ""
        told = [end.p50_elsewhere or ""]
        if first.p50_ms is not None and not alone and first.p50_elsewhere == end.p50_elsewhere:
            told.append(f"was {milliseconds(first.p50_ms)} ms in another run")
        told.append("on a busy machine" if end.disturbed else "")
        boxes.append((f"p50 latency{batch}", milliseconds(end.p50_ms), "ms", told))
    if end.gain is not None:
        interval = say_interval(end.gain)
        told = [f"95% interval {interval}" if interval else "measured apart, no interval"]
        if end.gain.low is not None and end.gain.high is not None and end.gain.low <= 1 <= end.gain.high:
            told.append("inside the noise")
        if end.gain.disturbed:
            told.append("on a busy machine")
        boxes.append(("times as fast", f"{end.gain.ratio:.{2 if end.gain.ratio < 2 else 1}f}×", "", told))
    if end.bytes_on_disk is not None:
        amount, _, unit = size(end.bytes_on_disk).partition(" ")
        was = f"was {size(first.bytes_on_disk)}" if first.bytes_on_disk and not alone else ""
        boxes.append(("on disk", amount, unit, [was]))
    if end.parameters is not None:
        was = f"was {first.parameters / 1e6:.1f} M" if first.parameters and not alone else ""
        boxes.append(("parameters", f"{end.parameters / 1e6:.1f}", "M", [was]))
    cells = "".join(
        f'<div><dt>{html.escape(title)}</dt><dd class="big">{html.escape(value)}'
        f"{f' <small>{html.escape(unit)}</small>' if unit else ''}</dd>"
        f"{''.join(f'<dd class=was>{html.escape(line)}</dd>' for line in told if line)}</div>"
        for title, value, unit, told in boxes
    )
    return f'<dl class="figures">{cells}</dl>'


def steps_table(report: Report) -> str:
    """A line a step: score, what the same rows say of it and its parent, latency, ratio, size."""
    metric = report.rows.metric if report.rows else "score"
    heads = [
        ("", "model"),
        ("n", METRIC_TITLES.get(metric, metric)),
        ("claim", "beside the model it was made of"),
        ("n", "p50, ms"),
        ("n", "times as fast"),
        ("n", "on disk"),
        ("n", "parameters"),
    ]
    end = report.headline.step if report.headline else None
    lines = []
    for step in report.steps:
        cells = [
            _cell(_name(step), "step"),
            _cell(_score(step), "n"),
            _cell(_claim(step), "claim"),
            _cell(_p50(step), "n"),
            _cell(_gain(step), "n"),
            _cell(_bytes(step), "n"),
            _cell("–" if step.parameters is None else f"{step.parameters / 1e6:.1f} M", "n"),
        ]
        lines.append(f"<tr{' class=end' if step.number == end else ''}>{''.join(cells)}</tr>")
    busy = any(
        (step.disturbed and step.p50_ms is not None) or (step.gain is not None and step.gain.disturbed)
        for step in report.steps
    )
    return _table(heads, lines) + (BUSY if busy else "")


def latency_table(groups: Mapping[str, Sequence[LatencyPart]]) -> str:
    """All measurements, those that can be compared together."""
    heads = [("", "model"), ("", "runtime"), ("n", "batch"), ("n", "tokens"), ("n", "threads")]
    heads += [("n", name) for name in ("p50, ms", "p95, ms", "p99, ms", "rows/s")]
    lines = []
    for parts in groups.values():
        for part in sorted(parts, key=lambda part: part.latency.p50_ms):
            one = part.latency
            star = "" if one.is_reliable else " *"
            values = (
                *(str(one.shape.batch_size), describe_tokens(one.shape), str(one.threads)),
                *(milliseconds(value) for value in (one.p50_ms, one.p95_ms, one.p99_ms)),
                per_second(one.rows_per_s) + star,
            )
            cells = [_cell(html.escape(part.name)), _cell(html.escape(f"{one.runtime}, {one.device}"))]
            lines.append(f"<tr>{''.join(cells)}{''.join(_cell(value, 'n') for value in values)}</tr>")
    busy = any(not part.latency.is_reliable for parts in groups.values() for part in parts)
    return _table(heads, lines) + (BUSY if busy else "")


def facts(part: MachinePart, machines: int) -> str:
    """A machine as names and values."""
    one = part.machine
    memory = "" if one.memory_bytes is None else f", {size(one.memory_bytes)} of memory"
    pairs = [
        ("processor", f"{one.cpu}, {one.physical_cores} cores{memory}"),
        ("flags", " ".join(one.cpu_flags) or "none that matter"),
        ("GPU", ", ".join(gpu.name for gpu in one.gpus) or "none"),
        ("system", f"{one.operating_system}, Python {one.python}"),
        ("versions", ", ".join(f"{name} {version}" for name, version in one.versions.items())),
    ]
    if machines > 1:
        pairs.insert(0, ("runs", ", ".join(part.runs)))
    cells = "".join(f"<dt>{name}</dt><dd>{html.escape(value)}</dd>" for name, value in pairs)
    return f'<dl class="facts">{cells}</dl>'


def _table(heads: Sequence[tuple[str, str]], lines: Sequence[str]) -> str:
    head = "".join(f'<th class="{kind}">{html.escape(title)}</th>' for kind, title in heads)
    return (
        f'<div class="scroll" tabindex="0"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def _cell(content: str, kind: str = "") -> str:
    return f'<td class="{kind}">{content}</td>' if kind else f"<td>{content}</td>"


def _name(step: Step) -> str:
    """Number, name and what it is, indented by its place in the line."""
    mark = MARKS.get(step.command or "", "")
    title = html.escape(step.source, quote=True)
    return (
        f'<div style="padding-left:{0.9 * step.depth:.1f}rem;display:flex" title="{title}">'
        f'<span><span class="mark {mark}">{step.number}</span></span>'
        f"<span>{html.escape(step.name)}<small>{html.escape(step.what)}</small></span></div>"
    )


def _score(step: Step) -> str:
    if step.score is None:
        return "–"
    told = _interval(step)
    if not step.score.here:
        told = _joined(told, f"on other rows: {step.score.split}")
    return number(step.score.value) + (f"<small>{html.escape(told)}</small>" if told else "")


def _interval(step: Step) -> str:
    score = step.score
    if score is None or score.low is None or score.high is None:
        return ""
    digits = 3 if abs(score.high) < 10 else 1
    return f"{score.low:.{digits}f}–{score.high:.{digits}f}"


def _claim(step: Step) -> str:
    verdict = step.verdict
    failure = "" if step.failure is None else f'<div class="worse">{html.escape(step.failure)}</div>'
    if verdict is None:
        return failure
    kind = next((word for word in ("worse", "better") if verdict.claim.startswith(word)), "")
    change = ""
    if verdict.difference is not None:
        change = f"{signed_points(verdict.difference, 1)} points: "
        if verdict.metric in LOWER_IS_BETTER:
            change = f"{verdict.difference:+.3g}: "
        change = change.replace("-", "−")
    return f'<span class="{kind}">{html.escape(change + verdict.claim)}</span>{failure}'


def _p50(step: Step) -> str:
    if step.p50_ms is None:
        return "–"
    star = " *" if step.disturbed else ""
    elsewhere = f"<small>{html.escape(step.p50_elsewhere)}</small>" if step.p50_elsewhere else ""
    return milliseconds(step.p50_ms) + star + elsewhere


def _gain(step: Step) -> str:
    gain = step.gain
    if gain is None:
        return "–"
    value = f"{gain.ratio:.2f}×" + (" *" if gain.disturbed else "")
    if gain.low is None or gain.high is None:
        return f"about {value}<small>measured apart</small>"
    noise = "inside the noise, " if gain.low <= 1 <= gain.high else ""
    return f"{value}<small>{noise}{say_interval(gain)}</small>"


def _bytes(step: Step) -> str:
    if step.bytes_on_disk is None:
        return "–"
    ratio = "" if step.size_ratio is None else f"<small>{step.size_ratio:.2f} of the first</small>"
    return size(step.bytes_on_disk) + ratio


def _joined(*parts: str) -> str:
    return ", ".join(part for part in parts if part)
