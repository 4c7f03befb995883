"""What a model makes of one text or pair."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Prediction:
    """One text and what the model makes of it.

    ``labels`` holds the most probable label (single-label) or all above the threshold, the most
    probable first (multi-label); ``probabilities`` every label's, in the model's order. A regression
    has ``value`` only. ``score`` is what candidates of a query are ordered by.
    """

    text: str
    text_pair: str | None
    labels: tuple[str, ...] = ()
    probabilities: tuple[float, ...] = ()
    value: float | None = None
    score: float | None = None
