"""How fast the models of a folder are beside each other, as far as it was measured.

Two models that were timed in turns have a ratio with an interval. Where one was timed in turns with a second
and the second with a third, the ratios multiply, and so, in quadrature, do their intervals. Two latencies of
different runs can be divided too, but what else the machine did in the meantime is then part of the ratio,
and there is no interval that says how much.

What the run that made a model measured of it is what the model takes; what others measured counts where it
measured nothing.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np

from compress.latency import Latency, Unavailable
from compress.paired import Speedup
from compress.workload import Shape
from recipes.ledger import LedgerRun
from recipes.measurements import BenchResult
from recipes.part import Part
from recipes.pruning_result import SpeedupResult
from recipes.result import Result


class Contestant(NamedTuple):
    """A model in a runtime."""

    sha256: str
    runtime: str


class Circumstances(NamedTuple):
    """What two latencies must have in common to be comparable."""

    device: str
    device_name: str
    threads: int
    shape: Shape


class Turns(NamedTuple):
    """A ratio that was measured in turns, and whether other work was in the way of that."""

    speedup: Speedup
    disturbed: bool


class Gain(Part):
    """How many times as fast as the first of its line a model is, for inputs of ``shape``.

    ``how``: ``in turns`` with it; ``step by step``, each model of the line in turns with the one before; or
    ``apart``, in runs of their own, which gives no interval. ``disturbed``: other work was in the way.
    """

    ratio: float
    low: float | None
    high: float | None
    how: Literal["in turns", "step by step", "apart"]
    device: str
    threads: int
    shape: Shape
    disturbed: bool


class Speeds:
    """All latencies and ratios of some runs, by circumstances."""

    def __init__(self, entries: Iterable[LedgerRun]) -> None:
        self._entries = tuple(entries)
        self._measured: dict[Circumstances, dict[Contestant, list[Latency]]] = {}
        self._own: dict[tuple[Circumstances, Contestant], list[Latency]] = {}  # by the run that made it
        self._compared: dict[Circumstances, dict[Contestant, dict[Contestant, Turns]]] = {}
        for entry in self._entries:
            if isinstance(entry.run, BenchResult):
                self._add_bench(entry.run)
            elif isinstance(entry.run, Result):
                self._add_result(entry.run, own=entry.made is not None)

    def along(self, line: Sequence[LedgerRun]) -> "Speeds":
        """The same without runs that made a model of ``line`` once more, byte by byte, and measured that."""
        folders, made = {entry.folder for entry in line}, {entry.made for entry in line} - {None}
        kept = [one for one in self._entries if one.made not in made or one.folder in folders]
        return self if len(kept) == len(self._entries) else Speeds(kept)

    def usual(self, models: Sequence[str]) -> Circumstances | None:
        """The circumstances, at batch size 1 if possible, in which most of ``models`` were measured."""

        def worth(where: Circumstances) -> tuple[bool, int, bool, float]:
            known = {one.sha256 for one in self._measured[where]} & set(models)
            return where.shape.batch_size == 1, len(known), where.device == "cpu", -where.shape.mean_tokens

        return max((where for where in self._measured), key=worth, default=None)

    def p50_ms(self, sha256: str, where: Circumstances) -> float | None:
        """What a model takes there: of several measurements the median."""
        contestant = self._contestant(sha256, where)
        return None if contestant is None else self._median(contestant, where)

    def is_disturbed(self, sha256: str, where: Circumstances) -> bool:
        """Whether any of that was disturbed."""
        contestant = self._contestant(sha256, where)
        return contestant is not None and not all(one.is_reliable for one in self._known(contestant, where))

    def gain(self, first: str, sha256: str, usual: Circumstances | None) -> Gain | None:
        """How much faster the model ``sha256`` is than ``first``: as usual, otherwise wherever it is known.

        A ratio that was measured in turns anywhere is worth more than one of separate runs.
        """
        rest = (
            where
            for where in self._measured
            if where != usual and (usual is None or where.shape.batch_size == usual.shape.batch_size)
        )
        places = ([] if usual is None else [usual]) + list(rest)
        apart = None
        for where in places:
            found = self._gain_in(first, sha256, where)
            if found is not None and found.how != "apart":
                return found
            apart = apart or found
        return apart

    def _gain_in(self, first: str, sha256: str, where: Circumstances) -> Gain | None:
        start, end = self._contestant(first, where), self._contestant(sha256, where)
        if start is None or end is None:
            return None
        circumstances = {"device": where.device, "threads": where.threads, "shape": where.shape}
        path = self._path(start, end, where)
        if path is None:
            measured = [one for who in (start, end) for one in self._known(who, where)]
            disturbed = not all(one.is_reliable for one in measured)
            ratio = self._median(start, where) / self._median(end, where)
            return Gain(ratio=ratio, low=None, high=None, how="apart", disturbed=disturbed, **circumstances)
        one = multiply([turns.speedup for turns in path])
        return Gain(
            ratio=one.ratio,
            low=one.low,
            high=one.high,
            how="in turns" if len(path) == 1 else "step by step",
            disturbed=any(turns.disturbed for turns in path),
            **circumstances,
        )

    def _path(self, start: Contestant, end: Contestant, where: Circumstances) -> list[Turns] | None:
        """The fewest ratios that lead from ``start`` to ``end``."""
        edges = self._compared.get(where, {})
        paths: dict[Contestant, list[Turns]] = {start: []}
        queue = [start]
        for who in queue:
            for other, turns in edges.get(who, {}).items():
                if other not in paths:
                    paths[other] = [*paths[who], turns]
                    queue.append(other)
        return paths.get(end) or None

    def _contestant(self, sha256: str, where: Circumstances) -> Contestant | None:
        """The model in the runtime that is its own: torch in float32 where it was run in that."""
        found = [one for one in self._measured.get(where, {}) if one.sha256 == sha256]
        return min(found, key=lambda one: (one.runtime != "torch-fp32", one.runtime), default=None)

    def _median(self, who: Contestant, where: Circumstances) -> float:
        return float(np.median([one.p50_ms for one in self._known(who, where)]))

    def _known(self, who: Contestant, where: Circumstances) -> list[Latency]:
        """What the run that made it measured, otherwise what others did."""
        return self._own.get((where, who)) or self._measured[where][who]

    def _add_result(self, run: Result, *, own: bool) -> None:
        self._add_latencies(run.model.sha256, run.latency)
        for latency in run.latency if own else ():
            if isinstance(latency, Latency):
                who = Contestant(run.model.sha256, latency.runtime)
                self._own.setdefault((circumstances_of(latency), who), []).append(latency)
        before, speedups = _before(run)
        if run.parent is None or not before:
            return
        self._add_latencies(run.parent.sha256, before)
        for one in speedups:
            ends = [_find(latencies, one) for latencies in (before, run.latency)]
            if ends[0] is not None and ends[1] is not None:
                first = Contestant(run.parent.sha256, ends[0].runtime)
                second = Contestant(run.model.sha256, ends[1].runtime)
                turns = Turns(one.speedup, not (ends[0].is_reliable and ends[1].is_reliable))
                self._connect(circumstances_of(ends[1]), first, second, turns)

    def _add_bench(self, run: BenchResult) -> None:
        shas = [one.model.sha256 for one in run.models]
        for row in run.rows:
            self._add_latencies(shas[row.model], [row.latency])
        for ratio in run.ratios:
            latencies = {
                (row.model, row.latency.runtime): row.latency
                for row in run.rows
                if isinstance(row.latency, Latency)
                and (row.latency.device, row.latency.shape) == (ratio.device, ratio.shape)
            }
            ends = ((ratio.baseline, ratio.baseline_runtime), (ratio.model, ratio.runtime))
            first, second = (Contestant(shas[model], runtime) for model, runtime in ends)
            disturbed = not all(latencies[end].is_reliable for end in ends if end in latencies)
            where = circumstances_of(latencies[ends[1]])
            self._connect(where, first, second, Turns(ratio.speedup, disturbed))

    def _add_latencies(self, sha256: str, latencies: Iterable[Latency | Unavailable]) -> None:
        for one in latencies:
            if isinstance(one, Latency):
                there = self._measured.setdefault(circumstances_of(one), {})
                there.setdefault(Contestant(sha256, one.runtime), []).append(one)

    def _connect(self, where: Circumstances, one: Contestant, other: Contestant, turns: Turns) -> None:
        """Of several ratios of the same two the one that is known best stays."""
        if one == other:
            return
        edges = self._compared.setdefault(where, {})
        known = edges.setdefault(one, {}).get(other)
        if known is None or _width(turns.speedup) < _width(known.speedup):
            edges[one][other] = turns
            edges.setdefault(other, {})[one] = Turns(_inverse(turns.speedup), turns.disturbed)


def circumstances_of(one: Latency) -> Circumstances:
    """Where and on what ``one`` was measured."""
    return Circumstances(one.device, one.device_name, one.threads, one.shape)


def multiply(speedups: Sequence[Speedup]) -> Speedup:
    """The ratio of the ends of a chain of independent ratios; half-widths add in quadrature, as logs."""
    middle = sum(math.log(one.ratio) for one in speedups)
    below = math.hypot(*(math.log(one.ratio / one.low) for one in speedups))
    above = math.hypot(*(math.log(one.high / one.ratio) for one in speedups))
    return Speedup(
        ratio=math.exp(middle),
        low=math.exp(middle - below),
        high=math.exp(middle + above),
        launches=min(one.launches for one in speedups),
    )


def _before(run: Result) -> tuple[Sequence[Latency | Unavailable], Sequence[SpeedupResult]]:
    """The latency of the parent that ``run`` measured in turns with its own model, and the ratios."""
    if run.distillation is not None:
        return run.distillation.teacher.latency, run.distillation.speedups
    part = run.pruning or run.export
    return ((), ()) if part is None else (part.latency_before, part.speedups)


def all_latencies(entries: Iterable[LedgerRun]) -> Iterator[tuple[str, LedgerRun | None, Latency]]:
    """Each model, by SHA-256, with each latency that was measured of it; and the run, if that made it."""
    for entry in entries:
        run = entry.run
        if isinstance(run, BenchResult):
            found = [(run.models[row.model].model.sha256, row.latency) for row in run.rows]
        elif isinstance(run, Result):
            found = [(run.model.sha256, one) for one in run.latency]
            if run.parent is not None:
                found = [(run.parent.sha256, one) for one in _before(run)[0]] + found
        else:
            found = []
        for sha256, one in found:
            if isinstance(one, Latency):
                yield sha256, entry if sha256 == entry.made else None, one


def _find(latencies: Iterable[Latency | Unavailable], wanted: SpeedupResult) -> Latency | None:
    known = (one for one in latencies if isinstance(one, Latency))
    return next((one for one in known if (one.device, one.shape) == (wanted.device, wanted.shape)), None)


def _width(speedup: Speedup) -> float:
    return math.log(speedup.high / speedup.low)


def _inverse(speedup: Speedup) -> Speedup:
    return Speedup(
        ratio=1 / speedup.ratio, low=1 / speedup.high, high=1 / speedup.low, launches=speedup.launches
    )
