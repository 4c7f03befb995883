"""Which parts of a graph suffer most from 8 bits, so that the worst can stay float."""

import re
import tempfile
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from compress.onnx_graph import save_graph
from compress.quantized_graph import TABLES, linear_layers
from compress.runtimes import open_runtime
from encoder.rows import TokenizedRows

if TYPE_CHECKING:
    from onnx import ModelProto

# A float graph made of 8 bits but for the parts it is told to keep.
Quantize = Callable[[Collection[str]], "ModelProto"]

PART = re.compile(r"encoder\.layers\.\d+\.(attention|feed_forward)|encoder\.embeddings|classifier")
BATCH_ROWS = 16


@dataclass(frozen=True)
class PartEffect:
    """What happens when only the part ``name`` is in 8 bits: by how much the logits change.

    ``effect`` is the root of the mean squared change of a logit, ``labels_changed`` the share of the rows of
    which another logit is the largest.
    """

    name: str
    effect: float
    labels_changed: float


def list_parts(graph: "ModelProto", *, embeddings: bool = False) -> tuple[str, ...]:
    """The parts of a float graph that can be in 8 bits or not, dotted names of modules, in their order."""
    names = [*(TABLES if embeddings else ()), *linear_layers(graph)]
    found = (PART.match(name) for name in names)
    return tuple(dict.fromkeys(match.group() for match in found if match))


def rank_parts(
    graph: "ModelProto",
    quantize: Quantize,
    rows: TokenizedRows,
    *,
    embeddings: bool = False,
    threads: int = 1,
) -> list[PartEffect]:
    """The parts of ``graph`` by what 8 bits do to the logits of ``rows``, the worst first.

    Each is measured with all others in float, so this takes one run more than there are parts. ``quantize``
    is given the parts to keep.
    """
    parts = list_parts(graph, embeddings=embeddings)
    expected = run_graph(graph, rows, threads=threads)
    ranking = []
    for part in parts:
        found = run_graph(quantize([other for other in parts if other != part]), rows, threads=threads)
        ranking.append(
            PartEffect(
                part,
                effect=float(np.sqrt(np.square(found - expected).mean())),
                labels_changed=float((found.argmax(1) != expected.argmax(1)).mean()),
            )
        )
    return sorted(ranking, key=lambda one: -one.effect)


def keep_worst(
    ranking: Sequence[PartEffect], quantize: Quantize, is_good: Callable[["ModelProto"], bool]
) -> tuple["ModelProto", tuple[str, ...]] | None:
    """The graph with the fewest of the worst parts in float that ``is_good``, and those parts.

    Tries none, then 1, 2, 4, … of them, and then between the last two. ``None``: not even with all in float.
    """

    def with_kept(count: int) -> tuple["ModelProto", tuple[str, ...]] | None:
        kept = tuple(one.name for one in ranking[:count])
        graph = quantize(kept)
        return (graph, kept) if is_good(graph) else None

    bad, tried = -1, 0
    while (best := with_kept(tried)) is None:
        if tried == len(ranking):
            return None
        bad, tried = tried, min(max(1, 2 * tried), len(ranking))
    while tried - bad > 1:
        middle = (bad + tried) // 2
        if (found := with_kept(middle)) is None:
            bad = middle
        else:
            best, tried = found, middle
    return best


def run_graph(graph: "ModelProto", rows: TokenizedRows, *, threads: int = 1) -> NDArray[np.float32]:
    """The logits of ``rows`` in ONNX Runtime on the CPU, float32 [R, C], in batches of like lengths."""
    order = np.argsort(-rows.lengths, kind="stable")
    batches = [order[start : start + BATCH_ROWS] for start in range(0, len(order), BATCH_ROWS)]
    with tempfile.TemporaryDirectory(prefix="enc-") as folder:
        path = Path(folder) / "graph.onnx"
        save_graph(graph, path)
        runtime = open_runtime("onnx-fp32", path, device="cpu", threads=threads)
        found = [runtime.to_numpy(runtime.run(runtime.prepare(rows.select(batch)))) for batch in batches]
    logits = np.empty((len(rows), found[0].shape[1]), dtype=np.float32)
    logits[order] = np.concatenate(found)
    return logits
