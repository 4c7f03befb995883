"""How much faster: the ratio of two durations that were measured in turns, with its interval.

Two things make repeated measurements of the same model differ. What else the machine does changes from second
to second; taking turns lets it fall on both. And each process has its own luck, with where its memory lies,
that stays as long as it lives: of six processes with the same model some are steadily two per cent faster
than others, however long one measures. So processes are started anew several times (launches), and a launch,
not a run, is what counts as one observation: an interval from the runs of one launch would be narrow and
wrong.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

CONFIDENCE = 0.95
MIN_LAUNCHES = 2


class Speedup(BaseModel):
    """The duration of a baseline over the duration of what is compared with it: 2.0 is twice as fast.

    ``low`` to ``high`` is the interval of ``CONFIDENCE``, from ``launches`` launches.
    """

    model_config = ConfigDict(frozen=True)

    ratio: float
    low: float
    high: float
    launches: int

    @property
    def is_noise(self) -> bool:
        """Whether the interval allows that nothing has changed."""
        return self.low <= 1 <= self.high

    def __str__(self) -> str:
        """In words: a gain that may be none is not stated as a gain."""
        # A bound beside 1 must not be printed as 1.
        digits = 3 if not self.is_noise and "1.00" in (f"{self.low:.2f}", f"{self.high:.2f}") else 2
        interval = f"{self.low:.{digits}f}–{self.high:.{digits}f}"
        if self.is_noise:
            return f"inside the noise: {self.ratio:.2f}× ({interval})"
        direction = "faster" if self.ratio > 1 else "slower"
        return f"{direction}: {self.ratio:.2f}× ({interval})"


def log_duration(durations: NDArray[np.float64]) -> float:
    """The log of a typical duration: over the inputs, the geometric mean of the medians over the passes.

    ``durations`` float64 [passes, inputs]. Inputs that differ in length count alike, in per cent.
    """
    return float(np.log(np.median(durations, axis=0)).mean())


def paired_speedup(baseline: Sequence[Sequence[float]], compared: Sequence[Sequence[float]]) -> Speedup:
    """The speed-up from log durations [launches][rounds], each round having measured both in turn.

    A launch counts as the median of its rounds' differences; the interval is Student's t over the launches,
    whose width therefore holds both kinds of noise.

    Raises:
        ValueError: fewer than ``MIN_LAUNCHES`` launches, or not the same rounds of both.
    """
    if len(baseline) < MIN_LAUNCHES or len(baseline) != len(compared):
        raise ValueError(f"{len(baseline)} and {len(compared)} launches; expected the same, at least 2")
    differences = [
        float(np.median(np.asarray(before) - np.asarray(after)))
        for before, after in zip(baseline, compared, strict=True)
    ]
    low, middle, high = t_interval(np.array(differences))
    return Speedup(
        ratio=float(np.exp(middle)),
        low=float(np.exp(low)),
        high=float(np.exp(high)),
        launches=len(differences),
    )


def t_interval(values: NDArray[np.float64], confidence: float = CONFIDENCE) -> tuple[float, float, float]:
    """Student's interval of the mean of ``values``: low, mean, high."""
    from scipy.stats import t

    mean = float(values.mean())
    margin = t.ppf((1 + confidence) / 2, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return mean - float(margin), mean, mean + float(margin)
