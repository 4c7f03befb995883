"""The models of a report as steps: how good, how fast and how big each is beside the first of its line."""

from collections.abc import Sequence
from pathlib import Path

from encoder.metrics import LOWER_IS_BETTER
from encoder.wording import counted
from recipes.ledger import LedgerRun
from recipes.part import Part
from recipes.report_models import Found, describe
from recipes.report_scores import Reference, StepScore, Verdict, describe_verdict, find_reference, find_score
from recipes.report_speed import Circumstances, Gain, Speeds, circumstances_of
from recipes.result import Result


class Step(Part):
    """A model that was made here, or of which something here was made.

    ``number`` is what the report calls it; ``parent`` and ``first`` are numbers too: of the step it was made
    of, and of the first classifier of its line. ``folder`` is ``None`` for a model from elsewhere.
    ``p50_ms`` was measured, by the run that made the model if it did; ``p50_elsewhere`` says how its
    circumstances differ from those of the report, ``disturbed`` that the machine was busy. ``placed_ms`` is
    where it stands in a chart: in the circumstances of the report, by its ratio to the first of the line
    where both were timed in turns; ``placed``: it was not measured there, and only that ratio gives it.
    ``front``: no other step is both better and faster (smaller, where nothing was timed). ``kept``: the model
    is there, and not only its run.json. ``failure`` says why a gate that its command was given was not met.
    """

    number: int
    name: str
    source: str
    folder: str | None
    command: str | None
    what: str
    parent: int | None
    first: int | None
    depth: int
    sha256: str
    num_hidden_layers: int | None
    score: StepScore | None
    verdict: Verdict | None
    p50_ms: float | None
    p50_elsewhere: str | None
    placed_ms: float | None
    placed: bool
    disturbed: bool
    gain: Gain | None
    bytes_on_disk: int | None
    size_ratio: float | None
    parameters: int | None
    embedding_parameters: int | None
    kept: bool = True
    failure: str | None = None
    front: bool = False

    @property
    def is_comparable(self) -> bool:
        """Whether it is a model that one can have, with a score on the rows of the report."""
        return self.kept and self.score is not None and self.score.here


def make_steps(found: Sequence[Found], folder: Path, speeds: Speeds) -> tuple[list[Step], Reference | None]:
    """``found`` as steps, and what they are compared on."""
    names = _names(found, folder)
    by_sha256 = {one.sha256: name for one, name in zip(reversed(found), reversed(names), strict=True)}
    reference = find_reference(found)
    usual = speeds.usual([one.sha256 for one in found])
    steps: list[Step] = []
    for place, one in enumerate(found):
        start = steps[one.first] if one.first is not None and one.first != place else None
        known = speeds.along(_line(found, place))
        gain = None if start is None else known.gain(start.sha256, one.sha256, usual)
        p50_ms, p50_elsewhere, disturbed = _measured(one, known, usual)
        placed_ms, placed = _place(one, start, gain, known, usual)
        entry, size = one.node.entry, one.size
        step = Step(
            number=place + 1,
            name=names[place],
            source=one.node.source,
            folder=str(entry.folder) if entry else None,
            command=entry.run.command if entry else None,
            what=describe(one),
            parent=None if one.parent is None else one.parent + 1,
            first=None if one.first is None else one.first + 1,
            depth=one.depth,
            sha256=one.sha256,
            num_hidden_layers=one.num_hidden_layers,
            score=find_score(one, reference),
            verdict=describe_verdict(one.run, by_sha256) if one.run else None,
            failure=_failure(one.run) if one.run else None,
            kept=one.run is None or one.run.config.get("keep") != "none",
            p50_ms=p50_ms,
            p50_elsewhere=p50_elsewhere,
            placed_ms=placed_ms,
            placed=placed,
            disturbed=disturbed,
            gain=gain,
            bytes_on_disk=one.bytes_on_disk,
            size_ratio=_ratio(one.bytes_on_disk, start.bytes_on_disk if start else None),
            parameters=size.parameters if size else None,
            embedding_parameters=size.parameters - size.parameters_without_embeddings if size else None,
        )
        steps.append(step)
    return mark_front(steps), reference


def _line(found: Sequence[Found], place: int) -> list[LedgerRun]:
    """The run that made the model at ``place``, and those that made what it was made of."""
    line: list[LedgerRun] = []
    at: int | None = place
    while at is not None:
        if (entry := found[at].node.entry) is not None:
            line.append(entry)
        at = found[at].parent
    return line


def _measured(
    one: Found, speeds: Speeds, usual: Circumstances | None
) -> tuple[float | None, str | None, bool]:
    """The p50 that was measured, how its circumstances differ, and whether the machine was busy.

    By the run that made it, in the ``usual`` circumstances if it did that, as `enc runs` shows it; otherwise
    what others measured in those.
    """
    own = one.node.entry.latencies if one.node.entry is not None else []
    if own:
        latency = next((latency for latency in own if circumstances_of(latency) == usual), own[0])
        return latency.p50_ms, _difference(circumstances_of(latency), usual), not latency.is_reliable
    if usual is None:
        return None, None, False
    return speeds.p50_ms(one.sha256, usual), None, speeds.is_disturbed(one.sha256, usual)


def _difference(where: Circumstances, usual: Circumstances | None) -> str | None:
    """``2 threads``: how ``where`` is not as ``usual``."""
    if usual is None or where == usual:
        return None
    shape = where.shape
    words = [] if where.device_name == usual.device_name else [where.device_name]
    if where.threads != usual.threads:
        words.append(counted(where.threads, "thread"))
    if shape.batch_size != usual.shape.batch_size:
        words.append(f"batch {shape.batch_size}")
    if shape != usual.shape and shape.batch_size == usual.shape.batch_size:
        words.append("other rows")
    return ", ".join(words) or None


def _ratio(amount: int | None, before: int | None) -> float | None:
    return amount / before if amount is not None and before else None


def are_timed(steps: Sequence[Step]) -> bool:
    """Whether two of those that can be compared have a latency; otherwise they are compared by size."""
    return sum(step.is_comparable and step.placed_ms is not None for step in steps) > 1


def mark_front(steps: Sequence[Step]) -> list[Step]:
    """``steps`` with ``front`` set: by latency, or where none is known of two steps, by size."""

    timed = are_timed(steps)

    def cost(step: Step) -> float | None:
        return step.placed_ms if timed else step.bytes_on_disk

    there = [step for step in steps if step.is_comparable]
    points = [
        (step.number, _worth(step.score), value)
        for step in there
        if step.score is not None and (value := cost(step)) is not None
    ]
    front = {
        number
        for number, score, spent in points
        if not any(
            (other >= score and less <= spent) and (other > score or less < spent)
            for _, other, less in points
        )
    }
    return [step.model_copy(update={"front": step.number in front}) for step in steps]


def _worth(score: StepScore) -> float:
    return -score.value if score.metric in LOWER_IS_BETTER else score.value


def short_name(path: str, folder: Path) -> str:
    """What a reader of ``folder`` would call ``path``: what comes after ``folder``, else its last part."""
    one, base = Path(path).expanduser(), folder.expanduser()
    if one.resolve() != base.resolve() and one.resolve().is_relative_to(base.resolve()):
        return str(one.resolve().relative_to(base.resolve()))
    return one.name or path


def _names(found: Sequence[Found], folder: Path) -> list[str]:
    """Short names, and where two would be the same, the whole."""
    names = [short_name(one.node.source, folder) for one in found]
    return [
        one.node.source if names.count(name) > 1 else name for one, name in zip(found, names, strict=True)
    ]


def _failure(run: Result) -> str | None:
    if run.compress is not None:
        return run.compress.failure
    if run.export is not None:
        return "; ".join(run.export.failures) or None
    return run.pruning.failure if run.pruning is not None else None


def find_verdict(found: Sequence[Found], end: Step, start: Step) -> Verdict | None:
    """The comparison of ``end`` with ``start`` on the same rows, if a run made it."""
    names = {start.sha256: start.name}
    for run in found[end.number - 1].results:
        if run.against is not None and run.against.sha256 == start.sha256:
            return describe_verdict(run, names)
    return None


def _place(
    one: Found, start: Step | None, gain: Gain | None, speeds: Speeds, usual: Circumstances | None
) -> tuple[float | None, bool]:
    """The place of a model in the ``usual`` circumstances, in ms, and whether only a ratio gives it.

    What was timed in turns with the first of the line is placed by that ratio: between two runs the machine
    may have become slower, within one it does so for both.
    """
    if usual is None:
        return None, False
    own = speeds.p50_ms(one.sha256, usual)
    if start is None or start.placed_ms is None or gain is None or gain.how == "apart":
        return own, False
    here = (gain.device, gain.threads, gain.shape) == (usual.device, usual.threads, usual.shape)
    if not here and own is not None:
        return own, False
    return start.placed_ms / gain.ratio, not here
