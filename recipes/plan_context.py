"""What an estimate of time needs to know of a step: shapes, rows, and the times of a trial.

Another shape than that of the trial takes a row's time by its multiply-accumulates.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from compress.size import macs_per_row
from encoder.config import EncoderConfig
from recipes.row_times import RowTimes
from recipes.side_by_side import LAUNCHES, RUNS, SECONDS, WARM_UP_SECONDS
from recipes.trained import LATENCY_BATCH_SIZES, TIMED_BATCHES, TIMED_TOKENS

# A case of a latency measurement is warmed up for at most so long, and at least for three passes.
LONGEST_WARM_UP, WARM_UP_PASSES, WARM_UP_RUNS = 5.0, 3, 5
# An exported graph, for a row, beside torch.
GRAPH_SHARE = 0.6


@dataclass(frozen=True)
class StepContext:
    """What an estimate needs of a step: the shapes before and after it, and rows by split, cut as it does."""

    before: EncoderConfig
    after: EncoderConfig
    rows: Mapping[str, int]
    tokens: float
    times: RowTimes

    @property
    def train(self) -> int:
        """Training rows."""
        return self.rows.get("train", 0)

    @property
    def scored(self) -> int:
        """Rows of the splits that scores are told of."""
        return self.rows.get("validation", 0) + self.rows.get("test", 0)

    @property
    def reported(self) -> int:
        """Rows of the split that models are compared on."""
        return self.rows.get("test") or self.rows.get("validation", 0)

    def predict(self, config: EncoderConfig) -> float:
        """Seconds of a row in prediction."""
        return self.times.prediction_s * self._share(config)

    def learn(self, config: EncoderConfig) -> float:
        """Seconds of a row in training."""
        return self.times.training_s * self._share(config)

    def _share(self, config: EncoderConfig) -> float:
        outputs, times = self.times.num_outputs, self.times
        one = sum(macs_per_row(config, max(1, round(self.tokens)), num_outputs=outputs).values())
        other = sum(macs_per_row(times.config, max(1, round(times.tokens)), num_outputs=outputs).values())
        return one / other

    def latency(self, config: EncoderConfig, *, launches: int = 1, turns: bool = False) -> float:
        """Seconds of measuring one model on rows, as all commands do after their work."""
        each = self.predict(config)
        warm, least = (WARM_UP_SECONDS, SECONDS / launches) if turns else (LONGEST_WARM_UP, SECONDS)
        seconds = self.times.process_s
        for size in LATENCY_BATCH_SIZES:
            batches = min(TIMED_BATCHES, max(2, int(TIMED_TOKENS / (size * max(1.0, self.tokens)))))
            run = size * each
            seconds += min(warm, WARM_UP_PASSES * max(WARM_UP_RUNS, batches) * run) + run * batches
            seconds += max(least, math.ceil(RUNS / launches) * run)
        return launches * seconds

    def both_latencies(self) -> float:
        """Seconds of measuring a model in turns with the one it is made of."""
        return sum(self.latency(one, launches=LAUNCHES, turns=True) for one in (self.before, self.after))
