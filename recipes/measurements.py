"""What a measurement leaves behind: the run.json of `enc bench` and of `enc profile`."""

from collections.abc import Sequence

import numpy as np

from compress.latency import Latency, Unavailable
from compress.paired import Speedup
from compress.profile import Profile
from compress.size import Size
from compress.workload import Shape
from encoder.rows import TokenizedRows
from encoder.tokenizer import EncodingStats
from recipes.part import Part
from recipes.result import ModelResult, Run


class MeasuredTexts(Part):
    """The texts that were measured on: their lengths in tokens as the (first) model's tokenizer cuts them.

    ``histogram`` maps a power of two to how many rows have at most so many tokens, and more than half.
    """

    source: str
    split: str
    rows: int
    rows_cut: int
    tokens_lost: int = 0
    median_tokens: float
    p95_tokens: float
    max_tokens: int
    histogram: dict[int, int]


class BenchModel(Part):
    """A model that was measured; its place in the list is its number in the rows."""

    model: ModelResult
    size: Size


class BenchRow(Part):
    """The latency of model number ``model``; an ``Unavailable`` stands for all shapes."""

    model: int
    latency: Latency | Unavailable


class BenchRatio(Part):
    """How much faster model number ``model`` in ``runtime`` is than ``baseline`` in ``baseline_runtime``."""

    model: int
    runtime: str
    baseline: int
    baseline_runtime: str
    device: str
    shape: Shape
    speedup: Speedup
    verdict: str


class BenchResult(Run):
    """One run of `enc bench`. ``parent`` is the first model; ``ratios`` are empty for one model."""

    models: tuple[BenchModel, ...]
    data: MeasuredTexts | None
    rows: tuple[BenchRow, ...]
    ratios: tuple[BenchRatio, ...]


class ProfileResult(Run):
    """One run of `enc profile`. ``advice`` says whether heads or neurons are the better thing to prune."""

    model: ModelResult
    data: MeasuredTexts | None
    profile: Profile
    advice: str


def describe_texts(source: str, split: str, rows: TokenizedRows, stats: EncodingStats) -> MeasuredTexts:
    """The lengths of ``rows``, and what ``stats`` says was cut off them."""
    lengths = rows.lengths
    median, p95 = np.percentile(lengths, [50, 95])
    return MeasuredTexts(
        source=source,
        split=split,
        rows=len(rows),
        rows_cut=stats.rows_cut,
        tokens_lost=stats.tokens_lost,
        median_tokens=float(median),
        p95_tokens=float(p95),
        max_tokens=int(lengths.max()),
        histogram=_histogram(lengths.tolist()),
    )


def _histogram(lengths: Sequence[int]) -> dict[int, int]:
    buckets = [1 << max(0, length - 1).bit_length() for length in lengths]
    return {bucket: buckets.count(bucket) for bucket in sorted(set(buckets))}
