"""The search of a compression: candidates made in earnest, one after another, until one meets the goal."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from compress.latency_table import LatencyTable
from compress.units import Unit
from encoder.config import EncoderConfig
from encoder.errors import CompressionError
from encoder.wording import signed_points
from recipes.compress_attempts import Attempt, Attempts
from recipes.compress_candidates import Maker, Plan, plan_candidates
from recipes.compress_config import CompressConfig
from recipes.compress_result import Candidate, Goal
from recipes.compress_training import Teaching
from recipes.compress_verdict import choose, is_fast_enough, keeps_score, mark, meets
from recipes.observer import Recorder
from recipes.pruning_inputs import PruningInputs

if TYPE_CHECKING:
    from compress.importance import Scores

# What is aimed at is faster than the goal by so much: a table is not as exact as a measurement.
MARGIN = 0.92
# Candidates that are exported at most without training, and as a refuge where the goal is not met.
MOST_UNTRAINED, MOST_NEAREST = 4, 3


def most_folders(max_candidates: int) -> int:
    """How many folders with a whole model a search has on disk at most, before it is tidied up.

    Of each candidate that is made in earnest its model and its export, of one that is trained what came of
    that too; and those of the chosen one once more.
    """
    made = MOST_UNTRAINED + MOST_NEAREST + max_candidates
    return 2 * made + max_candidates + 2


@dataclass
class Search:
    """The candidates, and those that are made in earnest until one meets the goal.

    ``found`` are all candidates by plan as they are without training, ``made`` those made in earnest.
    ``slower`` is how many times slower a candidate was measured to be than the table said, if it was: what is
    tried afterwards is planned with that.
    """

    config: CompressConfig
    shape: EncoderConfig
    table: LatencyTable
    goal: Goal
    maker: Maker
    attempts: Attempts
    recorder: Recorder
    importance: "Mapping[Unit, Scores]"
    plans: list[Plan] = field(default_factory=list)
    found: dict[str, Candidate] = field(default_factory=dict)
    made: list[Attempt] = field(default_factory=list)
    slower: float = 1.0

    @classmethod
    def begin(
        cls,
        config: CompressConfig,
        inputs: PruningInputs,
        table: LatencyTable,
        goal: Goal,
        work: Path,
        recorder: Recorder,
    ) -> "Search":
        """All candidates, scored without training."""
        maker = Maker(config, inputs, recorder)
        attempts = Attempts(config, maker, Teaching(config, maker, work), goal, recorder)
        shape, importance = inputs.start.config, maker.find_importance()
        search = cls(config, shape, table, goal, maker, attempts, recorder, importance)
        search.plan()
        return search

    def plan(self) -> None:
        """Add the candidates for the goal, as far as they are not there yet."""
        limit = self.goal.limit_ms * MARGIN / self.slower
        plans = plan_candidates(self.shape, self.importance, self.table, limit)
        new = [plan for plan in plans if plan.key not in self.found]
        self.found |= self.maker.score_all(new)
        self.plans += new

    def run(self) -> None:
        """Make candidates until one meets the goal or nothing is left to try."""
        if self._try_untrained() or self._try_trained():
            return
        if not any(self._is_refuge(one) for one in self.made):
            for plan in self._refuges()[:MOST_NEAREST]:
                self._try(self.attempts.untrained(plan))
                if self._is_refuge(self.made[-1]):
                    return

    def _try_untrained(self) -> bool:
        """Those that need no training, the best first."""
        for _ in range(MOST_UNTRAINED):
            tried = {attempt.plan.key for attempt in self.made}
            ready = [plan for plan in self._ready() if plan.key not in tried]
            if not ready:
                return False
            if self._try(self.attempts.untrained(ready[0])):
                return True
        return False

    def _try_trained(self) -> bool:
        """Those to train, as many as there may be; in another precision a model is not trained again."""
        trained: set[str] = set()
        tried: set[str] = set()
        while plan := next(
            (
                one
                for one in self._to_train()
                if one.key not in tried
                and (one.model_key in trained or len(trained) < self.config.max_candidates)
            ),
            None,
        ):
            tried.add(plan.key)
            trained.add(plan.model_key)
            if self._try(self.attempts.trained(plan)):
                return True
        return False

    def _try(self, attempt: Attempt) -> bool:
        """Take note of ``attempt``, and of what it says of the table; whether it meets the goal."""
        self.made.append(attempt)
        one = attempt.candidate
        fall = "not defined" if one.drop is None else f"{signed_points(-one.drop)} points"
        speed = f", {one.speedup:.2f} times as fast" if one.speedup is not None else ""
        speed += ", on a busy machine" if one.disturbed else ""
        self.recorder.note(f"{one.name}: {fall} on validation{speed}.")
        if one.proven and self._looks_fast(attempt.plan) and not is_fast_enough(one, self.goal):
            self._learn_from(one)
        return meets(one, self.goal)

    def _learn_from(self, one: Candidate) -> None:
        """Plan anew where ``one`` was measured to be slower than the table says."""
        took = one.latency_ms or one.predicted_ms
        if self.goal.target_speedup is not None and one.speedup is not None:
            took = self.goal.baseline_ms / one.speedup
        self.slower = max(self.slower, took / one.predicted_ms)
        self.recorder.note(
            f"That is slower than the table says, by {self.slower - 1:.0%}; others are planned with that."
        )
        self.plan()

    def _looks_fast(self, plan: Plan) -> bool:
        """Whether it is fast enough by the table, with what is known of that."""
        return plan.predicted_ms * self.slower <= self.goal.limit_ms

    def _is_refuge(self, attempt: Attempt) -> bool:
        one = attempt.candidate
        return one.proven and not one.failures and keeps_score(one, self.goal)

    def _fast(self) -> list[Plan]:
        """Those that the table holds to be fast enough, the best untrained score first."""
        fast = [plan for plan in self.plans if self._looks_fast(plan)]
        return sorted(fast, key=lambda plan: (self._loss(plan), plan.predicted_ms))

    def _ready(self) -> list[Plan]:
        """Those that need no training."""
        return [plan for plan in self._fast() if self._keeps(plan)]

    def _to_train(self) -> list[Plan]:
        """Those to train, in this order: of each number of layers the best first, then the second ones.

        What a candidate is without training says little across numbers of layers: whole layers that are gone
        cost more at first, and are learnt again sooner. The last one of three or more that may be trained is
        a little too slow: it may come nearer than what needs no training. Where none is fast enough, that is
        the fastest.
        """
        turns: dict[int, int] = {}
        ordered: list[tuple[int, int, Plan]] = []
        for plan in self._fast():
            turn = turns[len(plan.layers)] = turns.get(len(plan.layers), 0) + 1
            ordered.append((turn, len(ordered), plan))
        fast = [plan for _, _, plan in sorted(ordered, key=lambda one: one[:2])]
        models = list(dict.fromkeys(plan.model_key for plan in fast))
        slow = [plan for plan in self.plans if plan.model_key not in models and not self._keeps(plan)]
        slow = sorted(slow, key=lambda plan: plan.predicted_ms)[:1]
        if slow and self.config.max_candidates > 2:
            models = models[: self.config.max_candidates - 1]
        return [*(plan for plan in fast if plan.model_key in models), *slow]

    def _keeps(self, plan: Plan) -> bool:
        """Whether it keeps the score without training."""
        return keeps_score(self.found[plan.key], self.goal)

    def _refuges(self) -> list[Plan]:
        """Those that keep the score without training, the fastest first."""
        tried = {attempt.plan.key for attempt in self.made if attempt.training is None}
        kept = [plan for plan in self.plans if plan.key not in tried and self._keeps(plan)]
        return sorted(kept, key=lambda plan: plan.predicted_ms)

    def _loss(self, plan: Plan) -> float:
        drop = self.found[plan.key].drop
        return float("inf") if drop is None else drop

    def conclude(self) -> tuple[tuple[Candidate, ...], Attempt]:
        """All candidates, marked, and the one that is kept; those made in earnest first.

        Raises:
            CompressionError: there is none that may be used.
        """
        tried = {attempt.plan.key for attempt in self.made if attempt.training is None}
        rest = [self.found[plan.key] for plan in self.plans if plan.key not in tried]
        candidates = [*(attempt.candidate for attempt in self.made), *rest]
        chosen = choose(candidates, self.goal)
        if chosen is None:
            reasons = [reason for one in candidates for reason in one.failures]
            raise CompressionError.from_problems(reasons, title="no candidate's export may be used:")
        return mark(candidates, chosen, self.goal), self.made[chosen]
