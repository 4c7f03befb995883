"""How many layers can be frozen: a score against their number, a verdict, and the model of the chosen point.

The data is read and tokenized once, the model loaded once, and what the frozen layers compute goes up from
point to point: all points together compute each layer's activations once.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from compress.uncertainty import CONFIDENCE, score_difference
from encoder.config import EncoderConfig
from encoder.errors import ConfigError, Problems
from encoder.files import write_atomic
from encoder.metrics import LOWER_IS_BETTER, main_metric
from encoder.wording import counted
from recipes.first_look import look_first
from recipes.freeze_sweep_config import FreezeSweepConfig
from recipes.freeze_verdict import Point, Verdict, judge_sweep
from recipes.frozen_storage import open_prefixes, plan_storage
from recipes.observer import Observer, Recorder, Silent
from recipes.result import RUN_FILE, FreezeSweep, Result, SweepPoint
from recipes.resuming import claim, finish
from recipes.scoring import Splits
from recipes.trained import make_result, save_as_scored, score_and_save
from recipes.training_inputs import (
    TrainingInputs,
    converted,
    load_start,
    look_at_start,
    make_training_config,
    read_training_data,
    tokenize_all,
)

if TYPE_CHECKING:
    from recipes.freeze_points import FinishedPoint, Points

# Which points there are, and what is made of them, may change when a sweep is resumed.
FREE_TO_CHANGE = ("points", "search", "max_drop", "keep")
COARSE_POINTS = 5
ONE_SCORE_POINT = 0.01


def freeze_sweep(config: FreezeSweepConfig, observer: Observer | None = None) -> Result:
    """Train every point, judge the curve on the validation rows, keep the model of the chosen point.

    With ``resume`` an interrupted sweep goes on: points that are finished are not computed again.

    Raises:
        ConfigError, DataError, CheckpointError: before any training, with all that is wrong of a kind.
    """
    started = time.perf_counter()
    recorder = Recorder(observer or Silent())
    folder, finished = look_first(
        "freeze-sweep",
        config,
        recorder,
        check_shape=lambda shape: check_shape(config, shape),
    )
    if finished is not None:
        return finished
    start = look_at_start(config, recorder)
    start = replace(start, config=check_shape(config, start.config))
    num_layers = start.config.num_hidden_layers
    wanted = choose_points(config, num_layers)
    inputs = read_training_data(config, start, recorder)
    if "validation" not in inputs.data.splits:
        raise ConfigError(f"{config.data} has no validation rows, on which the points are compared")
    from recipes.freeze_points import Points  # torch: not before all of that is found right

    splits = tokenize_all(inputs, recorder)
    base = load_start(inputs, config.seed, recorder)
    train, validation = splits.rows["train"], splits.rows["validation"]
    depths = range(num_layers + 1) if config.search else wanted
    on_disk = plan_storage(
        config, start.config, [train, validation], depths if config.cache_frozen else [0], recorder
    )
    work = claim(
        folder, config, model=inputs.parent.sha256, data=inputs.data.fingerprint, free=FREE_TO_CHANGE
    )
    training_config = make_training_config(config, start)
    metric = config.best_metric or main_metric(inputs.data.task)
    with open_prefixes(
        train, validation, training_config, device=start.device, folder=work if on_disk else None
    ) as prefixes:
        points = Points(config, inputs, splits, base, metric, work, prefixes)
        sweep = _Sweep(config, points, recorder, num_layers)
        sweep.run(wanted)
    result = _finish_result(config, sweep, inputs, splits, folder.work, recorder, started)
    write_atomic(folder.work / RUN_FILE, result.to_json())
    finish(folder)
    return result


def check_shape(config: FreezeSweepConfig, shape: EncoderConfig) -> EncoderConfig:
    """The shape that is trained, of a model of this ``shape``.

    Raises:
        ConfigError: points that are not there, or a residual that it cannot be converted to.
    """
    problems = Problems()
    with problems.collected():
        choose_points(config, shape.num_hidden_layers)
    with problems.collected():
        shape = converted(config, shape)
    problems.tell()
    return shape


def choose_points(config: FreezeSweepConfig, num_layers: int) -> list[int]:
    """The points to begin with, ascending."""
    if config.search:
        steps = COARSE_POINTS - 1
        return sorted({round(step * num_layers / steps) for step in range(COARSE_POINTS)})
    wanted = sorted(set(range(num_layers + 1) if config.points is None else config.points))
    if beyond := [str(k) for k in wanted if k > num_layers]:
        raise ConfigError(f"--points {','.join(beyond)}: {config.model} has {counted(num_layers, 'layer')}")
    return wanted


@dataclass
class _Sweep:
    """The points that are there so far, and what they say."""

    config: FreezeSweepConfig
    points: "Points"
    observer: Observer
    num_layers: int
    done: "dict[tuple[int, int], FinishedPoint]" = field(default_factory=dict)
    is_warm: bool = False

    @property
    def seeds(self) -> tuple[int, ...]:
        """All that every point is trained with."""
        return tuple(range(self.config.seed, self.config.seed + self.config.seeds))

    def run(self, wanted: Sequence[int]) -> None:
        """Train the points ``wanted``, and with ``search`` those that narrow down where it starts to hurt."""
        self._run_points(wanted)
        while self.config.search:
            judged, verdict = self.judge()
            fine = verdict.chosen
            above = min((k for k, _ in self.done if k > fine), default=fine)
            if above - fine <= 1:
                break
            judgement = next(point.judgement for point in judged if point.k == above)
            why = judgement if judgement == "hurts" else f"is {judgement}"
            self.observer.note(f"k = {fine} is fine, k = {above} {why}: between them now.")
            self._run_points([(fine + above) // 2])

    def _run_points(self, wanted: Sequence[int]) -> None:
        pairs = [(k, seed) for k in wanted for seed in self.seeds]
        self.done |= {pair: point for pair in pairs if (point := self.points.find(*pair)) is not None}
        missing = [pair for pair in pairs if pair not in self.done]
        if len(missing) < len(pairs):
            self.observer.note(f"{len(pairs) - len(missing)} of {len(pairs)} points were finished before.")
        if missing and not self.is_warm:
            self.observer.stage("Warming up: a few updates that do not count")
            self.points.warm_up(min(k for k, _ in missing))  # which trains most,
            self.is_warm = True
        spent: list[tuple[float, float]] = []  # what points cost: expected, in seconds
        for number, (k, seed) in enumerate(missing, 1):
            left = sum(self._cost(other) for other, _ in missing[number - 1 :])
            name = f"k = {k}" + (f", seed {seed}" if len(self.seeds) > 1 else "")
            self.observer.stage(f"Point {number} of {len(missing)}: {name}{_time_left(spent, left)}")
            before = time.perf_counter()
            point = self.points.run(k, seed, self.observer)
            self.done[k, seed] = point
            self._keep_best_seed(k)
            spent.append((self._cost(k), time.perf_counter() - before))
            value = "not defined" if point.score is None else f"{point.score:.4f}"
            self.observer.note(f"{name}: validation {self.points.metric} {value}")

    def _cost(self, k: int) -> float:
        """What a point takes beside others: its trained layers, and something that all have."""
        return self.num_layers - k + 0.5

    def best_seed(self, k: int) -> int:
        """The seed with the best validation score; of equals the first."""
        sign = -1 if self.points.metric in LOWER_IS_BETTER else 1

        def rank(seed: int) -> tuple[float, int]:
            score = self.done[k, seed].score
            return (-np.inf if score is None else sign * score, -seed)

        return max((seed for seed in self.seeds if (k, seed) in self.done), key=rank)

    def _keep_best_seed(self, k: int) -> None:
        best = self.best_seed(k)
        for seed in self.seeds:
            if seed != best and (k, seed) in self.done:
                self.points.forget_weights(k, seed)

    def judge(self) -> tuple[list[Point], Verdict]:
        """What the points that are there say."""
        metric = self.points.metric
        tried = sorted({k for k, _ in self.done})
        scores = {
            k: [np.nan if (s := self.done[k, seed].score) is None else s for seed in self.seeds]
            for k in tried
        }
        return judge_sweep(
            scores,
            rows=len(self.points.splits.rows["validation"]),
            max_drop=None if self.config.max_drop is None else self.config.max_drop * ONE_SCORE_POINT,
            sampling_errors=self._sampling_errors if len(self.seeds) == 1 else None,
            lower_is_better=metric in LOWER_IS_BETTER,
        )

    def _sampling_errors(self, best: int) -> dict[int, float]:
        """Of each k's difference from the best, from the interval that resampled rows give it."""
        points, seed = self.points, self.config.seed
        labels = points.splits.rows["validation"].labels
        assert labels is not None
        logits = points.logits(best, seed)
        errors = {}
        for k in sorted({k for k, _ in self.done} - {best}):
            one = score_difference(
                points.base.task, logits, points.logits(k, seed), labels, metric=points.metric
            )
            width = one.high - one.low
            errors[k] = width / (2 * _normal_quantile((1 + CONFIDENCE) / 2))
        return errors

    def describe(self) -> FreezeSweep:
        """The part of run.json that only a sweep has."""
        judged, verdict = self.judge()
        finished = {point.k: [self.done[point.k, seed] for seed in self.seeds] for point in judged}
        costs = {k: [point.training for point in points] for k, points in finished.items()}
        every = [point.training for point in self.done.values()]
        return FreezeSweep(
            metric=self.points.metric,
            split="validation",
            rows=len(self.points.splits.rows["validation"]),
            seeds=self.seeds,
            max_drop=self.config.max_drop,
            total_parameters=every[0].total_parameters,
            points=tuple(
                SweepPoint(
                    **point.model_dump(),
                    trainable_parameters=costs[point.k][0].trainable_parameters,
                    seconds=sum(one.seconds for one in costs[point.k]) / len(costs[point.k]),
                    peak_memory_bytes=_most([one.peak_memory_bytes for one in costs[point.k]]),
                    added_memory_bytes=_most([one.added_memory_bytes for one in finished[point.k]]),
                    device_memory_bytes=_most([one.device_memory_bytes for one in costs[point.k]]),
                )
                for point in judged
            ),
            verdict=verdict,
            kept_seed=self.best_seed(verdict.chosen),
            frozen_seconds=sum(one.frozen_seconds or 0.0 for one in every),
        )


def _most(values: Sequence[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return max(known) if len(known) == len(values) else None


def _normal_quantile(probability: float) -> float:
    from scipy.stats import norm

    return float(norm.ppf(probability))


def _time_left(spent: Sequence[tuple[float, float]], cost: float) -> str:
    """What ``cost`` will take by what was ``spent`` on points so far: expected cost, seconds."""
    if not spent:
        return ""
    seconds = cost * sum(s for _, s in spent) / sum(c for c, _ in spent)
    minutes = round(seconds / 60)
    return f" · about {f'{minutes} min' if minutes else f'{max(1, round(seconds))} s'} left"


def _finish_result(
    config: FreezeSweepConfig,
    sweep: _Sweep,
    inputs: TrainingInputs,
    splits: Splits,
    work: Path,
    recorder: Recorder,
    started: float,
) -> Result:
    """Save and score what is kept."""
    described = sweep.describe()
    chosen, seed, points = described.verdict.chosen, described.kept_seed, sweep.points
    if config.keep == "all":
        for k in (point.k for point in described.points if point.k != chosen):
            _keep(config, sweep, k, work, recorder)
    recorder.stage(f"Scoring k = {chosen}" if config.keep == "none" else f"Keeping k = {chosen}")
    with points.rebuilt(chosen, seed) as (model, frozen):
        recorder.note(frozen.description)
        folder = points.folder / "chosen" if config.keep == "none" else work
        trained = score_and_save(model, inputs, splits, folder, config, recorder, chosen_on_validation=True)
    if config.keep == "none":
        recorder.note("The model is not kept, as --keep none says.")
    return make_result(
        "freeze-sweep",
        config,
        inputs,
        splits,
        sweep.done[chosen, seed].training,
        trained,
        recorder,
        seconds=time.perf_counter() - started,
        sweep=described,
    )


def _keep(config: FreezeSweepConfig, sweep: _Sweep, k: int, work: Path, recorder: Recorder) -> None:
    """Save the model of point ``k`` in a folder of its own, with its run.json."""
    points, seed, name = sweep.points, sweep.best_seed(k), f"k{k}"
    recorder.stage(f"Keeping k = {k}")
    options = config.model_copy(update={"output": config.output / name, "seed": seed})
    with points.rebuilt(k, seed) as (model, _):
        trained = save_as_scored(
            model, points.logits(k, seed), points.inputs, points.splits, work / name, options
        )
    training = sweep.done[k, seed].training
    result = make_result(
        "freeze-sweep",
        options,
        points.inputs,
        points.splits,
        training,
        trained,
        recorder,
        seconds=training.seconds,
    )
    write_atomic(work / name / RUN_FILE, result.to_json())
