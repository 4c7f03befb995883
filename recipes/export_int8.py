"""int8 as far as the score allows: the parts of a model that suffer most stay in float."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compress.deployed import Export
from compress.process import default_threads
from recipes.export_config import ExportConfig
from recipes.export_inputs import ExportInputs
from recipes.export_onnx import Graph, write_graph_folder
from recipes.export_proof import Proven, prove
from recipes.export_result import ExportTrial, RankedPart
from recipes.observer import Observer

# Rows that parts are ranked on; only the logits are looked at, no labels.
RANKING_ROWS = 256


@dataclass(frozen=True)
class Int8Written:
    """An int8 graph that was written and proven, and what led to it. ``kept`` are the parts in float."""

    export: Export
    proven: Proven
    kept: tuple[str, ...]
    trials: tuple[ExportTrial, ...]
    ranking: tuple[RankedPart, ...]


def write_int8(
    options: ExportConfig, inputs: ExportInputs, graph: Graph, work: Path, observer: Observer
) -> Int8Written:
    """Write ``graph`` in int8 with the fewest parts in float that keep the loss of score within ``max_drop``.

    Where nothing does, all parts that could be in 8 bits are in float. Whether the loss is within the limit
    is looked at on all evaluation rows; which parts go first, on the logits of training rows.
    """
    from compress.sensitivity import keep_worst, rank_parts

    trials = _Trials(options, inputs, graph, work, observer)
    if trials.is_good(trials.quantize(())):
        return trials.finished(())
    observer.stage("Ranking the parts by what 8 bits do to them")
    rows, split = inputs.draw_rows(RANKING_ROWS)
    found = rank_parts(
        graph.proto,
        trials.quantize,
        rows,
        embeddings=options.quantize_embeddings,
        threads=default_threads(options.threads),
    )
    observer.note(f"Ranked by the logits of {len(rows):,} {split} rows, without their labels.")
    best = keep_worst(found, trials.quantize, trials.is_good)
    kept = best[1] if best is not None else tuple(one.name for one in found)
    ranking = (
        RankedPart(part=one.name, effect=one.effect, labels_changed=one.labels_changed) for one in found
    )
    return trials.finished(kept, tuple(ranking))


class _Trials:
    """int8 graphs, each written into ``work`` and proven there."""

    def __init__(
        self, options: ExportConfig, inputs: ExportInputs, graph: Graph, work: Path, observer: Observer
    ) -> None:
        self._options, self._inputs, self._graph = options, inputs, graph
        self._work, self._observer = work, observer
        self._make = _quantizer(options, inputs, graph, observer)
        self._kept: tuple[str, ...] = ()  # of the graph that was made last
        self._written: tuple[str, ...] | None = None  # what is in ``work``
        self._found: dict[tuple[str, ...], tuple[Export, Proven]] = {}

    def quantize(self, kept: Collection[str]) -> Any:
        """The graph in int8, but for the parts ``kept``."""
        self._kept = tuple(kept)
        return self._make(self._kept)

    def is_good(self, proto: Any) -> bool:
        """Write and prove ``proto``, the graph that was made last."""
        kept = self._kept
        if kept not in self._found:
            self._write(proto)
        drop = self._found[kept][1].drop
        return drop is not None and drop * 100 <= self._options.max_drop

    def _write(self, proto: Any) -> None:
        export = write_graph_folder(self._options, self._inputs, proto, self._work)
        threads = self._options.threads
        proven = prove(export.runtime, self._work, self._inputs, threads=threads, observer=self._observer)
        self._written = self._kept
        self._found[self._kept] = export, proven

    def finished(self, kept: tuple[str, ...], ranking: tuple[RankedPart, ...] = ()) -> Int8Written:
        """The graph with the parts ``kept`` in float, which is in ``work`` afterwards."""
        if self._written != kept:
            self._write(self.quantize(kept))
        trials = tuple(
            ExportTrial(kept_in_float=len(parts), drop=proven.drop)
            for parts, (_, proven) in self._found.items()
        )
        return Int8Written(*self._found[kept], kept, trials, ranking)


def _quantizer(
    options: ExportConfig, inputs: ExportInputs, graph: Graph, observer: Observer
) -> Callable[[Collection[str]], Any]:
    from compress.quantization import quantize_dynamic, static_quantizer

    how: dict[str, Any] = {
        "embeddings": options.quantize_embeddings,
        "reduce_range": True if options.any_cpu else None,
    }
    if options.calibration_rows == 0:
        return lambda kept: quantize_dynamic(graph.proto, keep_float=kept, **how)
    observer.stage("Finding the ranges of activations")
    rows, split = inputs.draw_rows(options.calibration_rows)
    observer.note(f"Activations have the ranges that they have on {len(rows):,} {split} rows.")
    return static_quantizer(graph.proto, rows, threads=default_threads(options.threads), **how)
