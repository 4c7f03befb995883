"""Linear probes: what a linear classifier finds in vectors (Alain and Bengio 2016, arXiv 1610.01644)."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
Labels = NDArray[np.int64]

# How weakly the weights are held back (sklearn's C), of vectors whose numbers have variance 1.
STRENGTHS = (0.001, 0.01, 0.1, 1.0)
# More change no accuracy that rows could show.
MOST_STEPS = 200
TOLERANCE = 1e-3


@dataclass(frozen=True)
class Rows:
    """Vectors [R, D] with their classes [R]."""

    vectors: Vectors
    labels: Labels

    def select(self, index: NDArray[np.int64]) -> "Rows":
        """Those of ``index``."""
        return Rows(self.vectors[index], self.labels[index])

    def with_labels(self, labels: Labels) -> "Rows":
        """The same vectors with other classes."""
        return Rows(self.vectors, labels)


def choose_strength(train: Rows, validation: Rows, strengths: Sequence[float] = STRENGTHS) -> float:
    """The strength whose probe has most of ``validation`` right; of equal ones the smallest."""
    shares = [rows_right(train, validation, strength).mean() for strength in strengths]
    return strengths[int(np.argmax(shares))]


def rows_right(train: Rows, test: Rows, strength: float) -> NDArray[np.bool_]:
    """Which rows of ``test`` a logistic regression on ``train`` has right, bool [R].

    Numbers are scaled to mean 0 and variance 1 in ``train``, so that ``strength`` means the same in every
    layer.
    """
    from sklearn.linear_model import LogisticRegression

    mean, deviation = train.vectors.mean(0), train.vectors.std(0)
    scale = np.where(deviation > 0, deviation, 1.0)
    if len(np.unique(train.labels)) < 2:
        right: NDArray[np.bool_] = test.labels == train.labels[0]
        return right
    probe: Any = LogisticRegression(C=strength, max_iter=MOST_STEPS, tol=TOLERANCE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it has not converged after so many steps
        probe.fit((train.vectors - mean) / scale, train.labels)
    right = probe.predict((test.vectors - mean) / scale) == test.labels
    return np.asarray(right)
