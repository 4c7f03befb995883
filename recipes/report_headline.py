"""What came out, in words that claim no more than the intervals allow."""

from collections.abc import Iterator, Sequence

from encoder.metrics import LOWER_IS_BETTER, METRIC_TITLES
from encoder.wording import counted
from recipes.compress_result import CompressResult
from recipes.part import Part
from recipes.report_models import Found
from recipes.report_scores import Rows, Verdict
from recipes.report_speed import Gain
from recipes.report_steps import Step, find_verdict

FINE_TUNINGS = ("finetune", "freeze-sweep")
# Metrics of which a hundredth is a point.
SHARES = ("accuracy", "subset_accuracy", "macro_f1", "micro_f1")


class Headline(Part):
    """The end of the line that the report is about, beside the first of it, as ``step`` and ``first``.

    ``what``, ``speed``, ``score`` and ``size`` are the parts of ``sentence``; one is ``None`` where nothing
    is known. ``compared``: on the same rows, one by one. ``remarks`` say what it rests on.
    """

    step: int
    first: int
    what: str
    speed: str | None
    score: str | None
    size: str | None
    sentence: str
    compared: bool
    remarks: tuple[str, ...]


def find_ends(steps: Sequence[Step]) -> tuple[Step, Step] | None:
    """The first and the last step of the line to speak of: the one with the most steps, and there its end.

    The end is what nothing else was made of, at the greatest depth. Of several the best score that is not
    shown to be worse counts more than speed, speed more than age.
    """
    lines: dict[int, list[Step]] = {}
    for step in steps:
        if step.first is not None and step.kept:
            lines.setdefault(step.first, []).append(step)
    if not lines:
        return None
    line = max(lines.values(), key=lambda line: (len(line), line[0].number))
    parents = {step.parent for step in line}
    leaves = [step for step in line if step.number not in parents]
    deepest = max(step.depth for step in leaves)
    candidates = [step for step in leaves if step.depth == deepest]

    def worth(step: Step) -> tuple[bool, float, int]:
        worse = step.verdict is not None and step.verdict.claim.startswith("worse")
        return not worse, step.gain.ratio if step.gain else 0.0, step.number

    first = next(step for step in line if step.number == step.first)
    return first, max(candidates, key=worth)


def make_headline(found: Sequence[Found], steps: Sequence[Step], rows: Rows | None) -> Headline | None:
    """The headline of ``steps``; ``None`` where there is no classifier."""
    ends = find_ends(steps)
    if ends is None:
        return None
    first, end = ends
    verdict = find_verdict(found, end, first)
    what = _describe_model(found, end)
    alone = first.number == end.number
    score = _say_score(end) if alone else say_change(first, end, verdict)
    speed = _say_p50(end) if alone else say_gain(end.gain, _called(first))
    size = _say_size(first, end)
    parts = [part for part in ([score, speed, size] if alone else [speed, score, size]) if part]
    sentence = f"{what}: {', '.join(parts)}" if parts else what
    return Headline(
        step=end.number,
        first=first.number,
        what=what,
        speed=speed,
        score=score,
        size=size,
        sentence=sentence,
        compared=alone or verdict is not None,
        remarks=tuple(_remarks(first, end, verdict, rows)),
    )


def say_gain(gain: Gain | None, other: str) -> str | None:
    """``5.2× as fast as the fine-tuned model at batch 1 (4.9–5.5)``; no gain inside the noise is claimed.

    What else ran on a busy machine stops long runs more often than short ones, so that no interval holds it.
    """
    if gain is None:
        return None
    at = f"at batch {gain.shape.batch_size}"
    busy = " on a busy machine" if gain.disturbed else ""
    if gain.low is None or gain.high is None:
        return f"about {gain.ratio:.1f}× as fast as {other} {at}, measured apart{busy}"
    interval = say_interval(gain) + (f",{busy}" if busy else "")
    if gain.low <= 1 <= gain.high:
        return f"not measurably faster than {other} {at} ({gain.ratio:.2f}×, {interval})"
    if gain.ratio < 1:
        return f"slower than {other} {at} ({gain.ratio:.2f}× as fast, {interval})"
    return f"{gain.ratio:.1f}× as fast as {other} {at} ({interval})"


def say_interval(gain: Gain) -> str:
    """``4.2–9.5``; a bound beside 1 is not printed as 1."""
    if gain.low is None or gain.high is None:
        return ""
    noise = gain.low <= 1 <= gain.high
    digits = 1 if min(abs(gain.low - 1), abs(gain.high - 1)) > 0.5 else 2
    if not noise and "1.00" in (f"{gain.low:.2f}", f"{gain.high:.2f}"):
        digits = 3
    return f"{gain.low:.{digits}f}–{gain.high:.{digits}f}"


def say_change(first: Step, end: Step, verdict: Verdict | None) -> str | None:
    """``0.4 points lost (no more than chance explains)``; what was not compared row by row is said to be."""
    before, after = first.score, end.score
    if verdict is not None and verdict.difference is not None:
        difference, metric = verdict.difference, verdict.metric
        chance = verdict.claim.startswith("no difference")
        how = "not distinguishable from none" if chance else "more than chance explains"
    elif before is None or after is None or not (before.here and after.here):
        return None
    else:
        difference, metric = after.value - before.value, after.metric
        if None in (before.low, before.high, after.low, after.high):
            how = "the interval is not known"
        else:
            # Two models on the same rows waver together, so that the difference is surer than this says.
            apart = _half_width(first) ** 2 + _half_width(end) ** 2 < difference**2
            how = "more than the intervals explain" if apart else "within the intervals"
    if difference == 0:
        return f"the same {METRIC_TITLES.get(metric, metric)}"
    better = (difference > 0) != (metric in LOWER_IS_BETTER)
    if metric not in SHARES:
        amount = f"{abs(difference):.3g} {'higher' if difference > 0 else 'lower'}"
        return f"{METRIC_TITLES.get(metric, metric)} {amount} ({how})"
    return f"{say_points(abs(difference))} {'gained' if better else 'lost'} ({how})"


def say_points(difference: float) -> str:
    """``0.4 points`` of 0.004."""
    number = f"{100 * difference:.1f}"
    return f"{number} point{'' if number == '1.0' else 's'}"


def say_bytes(amount: float) -> str:
    """``31 MB``, ``4.2 MB``, in powers of ten."""
    for unit in ("bytes", "kB", "MB"):
        if amount < 1000:
            return f"{amount:.{0 if amount >= 10 else 1}f} {unit}"
        amount /= 1000
    return f"{amount:.1f} GB"


def _describe_model(found: Sequence[Found], end: Step) -> str:
    """``12 layers, 86 of 144 heads, int8``: what it is after all that was done in its line."""
    words = [] if end.num_hidden_layers is None else [counted(end.num_hidden_layers, "layer")]
    removed: dict[str, str] = {}
    place: int | None = end.number - 1
    while place is not None:
        run = found[place].run
        if run is not None and run.pruning is not None and run.pruning.unit != "layers":
            one = run.pruning
            removed.setdefault(one.unit, f"{one.units_after:,} of {one.units_before:,} {one.unit}")
        if run is not None and run.distillation is not None:
            break  # the student is another model; what its teacher lost is no news of it
        place = found[place].parent
    words += reversed(removed.values())
    run = found[end.number - 1].run
    if run is not None and run.compress is not None:
        words += _say_chosen(run.compress)
    if run is not None and run.export is not None:
        words.append(run.export.precision if run.export.precision != "fp32" else run.export.format)
    return ", ".join(words) or end.name


def _say_chosen(compress: CompressResult) -> list[str]:
    """Heads and neurons of the candidate that was chosen, where another has more for as many layers."""
    words = []
    for one in (candidate for candidate in compress.candidates if candidate.chosen):
        alike = [other for other in compress.candidates if other.layers == one.layers]
        if one.heads < max(other.heads for other in alike):
            words.append(counted(one.heads, "head"))
        if one.neurons < max(other.neurons for other in alike):
            words.append(counted(one.neurons, "neuron"))
    return words


def _called(first: Step) -> str:
    return "the fine-tuned model" if first.command in FINE_TUNINGS else first.name


def _say_score(end: Step) -> str | None:
    score = end.score
    if score is None:
        return None
    interval = "" if score.low is None or score.high is None else f" ({score.low:.3f}–{score.high:.3f})"
    return f"{METRIC_TITLES.get(score.metric, score.metric)} {score.value:.3f}{interval}"


def _say_p50(end: Step) -> str | None:
    return None if end.p50_ms is None else f"{end.p50_ms:.3g} ms a text"


def _say_size(first: Step, end: Step) -> str | None:
    if end.bytes_on_disk is None:
        return None
    after = say_bytes(end.bytes_on_disk)
    if first.number == end.number or first.bytes_on_disk is None:
        return after
    before = say_bytes(first.bytes_on_disk)
    return f"{after} as before" if before == after else f"{after} instead of {before}"


def _half_width(step: Step) -> float:
    score = step.score
    assert score is not None and score.low is not None and score.high is not None
    return (score.high - score.low) / 2


def _remarks(first: Step, end: Step, verdict: Verdict | None, rows: Rows | None) -> Iterator[str]:
    if rows is not None:
        title = METRIC_TITLES.get(rows.metric, rows.metric)
        yield f"Scores: {title} on {rows.rows:,} {rows.split} rows of {rows.data}."
    if first.number != end.number:
        yield from _score_remarks(first, end, verdict)
        yield from _speed_remarks(end)


def _score_remarks(first: Step, end: Step, verdict: Verdict | None) -> Iterator[str]:
    if verdict is not None and verdict.difference is not None:
        parts = [f"{verdict.claim[:1].upper()}{verdict.claim[1:]}"]
        if verdict.low is not None and verdict.high is not None:
            interval = f"95% interval {verdict.low:+.4f} to {verdict.high:+.4f}"
            parts.append(f"difference {verdict.difference:+.4f}, {interval}")
        if verdict.p_value is not None:
            parts.append(f"McNemar's exact test: p = {verdict.p_value:.2g}")
        yield "; ".join(parts) + "."
    elif first.score is not None and end.score is not None and first.score.here and end.score.here:
        yield (
            f"{end.name} and {first.name} were not compared row by row, which would tell smaller differences."
        )


def _speed_remarks(end: Step) -> Iterator[str]:
    gain = end.gain
    if gain is None:
        return
    tokens = (
        f"rows of the data, {gain.shape.mean_tokens:.0f} tokens on average"
        if gain.shape.sequence_length is None
        else f"rows of {gain.shape.sequence_length} tokens"
    )
    threads = f", {gain.threads} thread{'' if gain.threads == 1 else 's'}" if gain.device == "cpu" else ""
    how = {
        "in turns": "both timed in turns",
        "step by step": "the product of ratios, each of two models timed in turns",
        "apart": "each timed in a run of its own: what else the machine did is part of it",
    }[gain.how]
    yield f"Speed: {gain.device}{threads}, {tokens}; {how}."
    if gain.disturbed:
        yield (
            "Other work on the machine disturbed the timing. It stops long runs more often than short ones, "
            "so the ratio may be too good: measure again when the machine is quiet."
        )
