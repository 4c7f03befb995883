"""A report in Markdown, short enough for a pull request."""

from collections.abc import Iterator

from commands.bench_report import milliseconds
from commands.tables import number, size
from encoder.metrics import METRIC_TITLES
from recipes.report import Report
from recipes.report_headline import say_interval
from recipes.report_steps import Step


def render_markdown(report: Report) -> str:
    """Headline, a table of the steps, verdicts, commands."""
    return "\n\n".join(_parts(report)) + "\n"


def _parts(report: Report) -> Iterator[str]:
    if report.headline is not None:
        yield f"### {_escape(report.headline.sentence)}"
        if report.headline.remarks:
            yield "\n".join(f"- {_escape(line)}" for line in report.headline.remarks)
    else:
        yield f"### {len(report.runs)} runs in {_escape(report.folder)}"
    if report.steps:
        yield "\n".join(_table(report))
    if verdicts := list(_verdicts(report)):
        yield "\n".join(f"- {_escape(line)}" for line in verdicts)
    yield "<details><summary>Commands</summary>"
    longest = "~~~~" if any("~~~" in run.line for run in report.runs) else "~~~"
    yield "\n".join([f"{longest}sh", *(run.line for run in report.runs), longest])
    yield "</details>"
    if report.machines:
        one = report.machines[-1].machine
        names = ("enc-encoder", "torch", "onnxruntime")
        versions = ", ".join(f"{name} {one.versions[name]}" for name in names if name in one.versions)
        yield _escape(f"{one.cpu}, {one.physical_cores} cores; {versions}.")


def _table(report: Report) -> Iterator[str]:
    metric = report.rows.metric if report.rows else "score"
    batch = f", batch {report.timed.batch_size}" if report.timed else ""
    title = METRIC_TITLES.get(metric, metric)
    yield f"| | model | {title} (95% interval) | p50, ms{batch} | times as fast | on disk |"
    yield "| ---: | --- | ---: | ---: | ---: | ---: |"
    for step in report.steps:
        p50 = "–" if step.p50_ms is None else milliseconds(step.p50_ms)
        p50 += f" ({_escape(step.p50_elsewhere)})" if step.p50_elsewhere else ""
        p50 += ", busy" if step.disturbed and step.p50_ms is not None else ""
        disk = "–" if step.bytes_on_disk is None else size(step.bytes_on_disk)
        if step.size_ratio is not None:
            disk += f" ({step.size_ratio:.2f})"
        name = f"{_escape(step.name)}: {_escape(step.what)}"
        yield f"| {step.number} | {name} | {_score(step)} | {p50} | {_gain(step)} | {disk} |"


def _score(step: Step) -> str:
    score = step.score
    if score is None:
        return "–"
    interval = "" if score.low is None or score.high is None else f" ({score.low:.3f}–{score.high:.3f})"
    return number(score.value) + interval + ("" if score.here else ", on other rows")


def _gain(step: Step) -> str:
    gain = step.gain
    if gain is None:
        return "–"
    busy = ", busy" if gain.disturbed else ""
    if gain.low is None or gain.high is None:
        return f"about {gain.ratio:.2f}×{busy}"
    noise = ", noise" if gain.low <= 1 <= gain.high else ""
    return f"{gain.ratio:.2f}× ({say_interval(gain)}{noise}){busy}"


def _verdicts(report: Report) -> Iterator[str]:
    for step in report.steps:
        if step.verdict is not None:
            yield f"{step.number} {step.name}: {step.verdict.claim}."
        if step.failure is not None:
            yield f"{step.number} {step.name}: {step.failure.rstrip('.')}."
    for part in report.sweeps:
        yield f"{part.name}: {' '.join(part.sweep.verdict.sentences[:2])}"
    for profile in report.profiles:
        yield f"{profile.name}: {profile.advice}"


def _escape(text: str) -> str:
    """``text`` as it is: no markup, no line break, no cell of a table begins in it."""
    for mark in "\\`*_[]<>|#~":
        text = text.replace(mark, f"\\{mark}")
    return " ".join(text.split())
