"""How long the steps of a chain will take: their rows, epochs and processes counted, by the times of a trial.

Another shape than that of the trial takes a row's time by its multiply-accumulates.
"""

from collections.abc import Callable, Mapping
from typing import Any

from encoder.config import EncoderConfig
from recipes.chain import Step
from recipes.compress_time import foresee
from recipes.plan_context import GRAPH_SHARE, StepContext
from recipes.pruning import CONTROL_DRAWS
from recipes.pruning_measuring import PROOF_ROWS

# Numbers that a search for max_drop tries, of its grid of 19, by bisection.
SEARCH_TRIALS = 5


def estimate_seconds(step: Step, context: StepContext) -> float:
    """How long ``step`` will take."""
    return ESTIMATES[step.command](step.options, context)


def _train(options: Any, context: StepContext, config: EncoderConfig, frozen: int = 0) -> float:
    """Epochs on all training rows, scored after each; ``frozen`` layers are computed once."""
    part = 1 - frozen / config.num_hidden_layers
    once = frozen / config.num_hidden_layers * context.predict(config) * (context.train + context.scored)
    each = context.train * context.learn(config) * max(part, 0.02)
    each += context.rows.get("validation", 0) * context.predict(config) * max(part, 0.02)
    return once + float(options.num_epochs) * each


def _finetune(options: Any, context: StepContext) -> float:
    config = context.after
    frozen = options.freeze_layers
    if options.train_last is not None:
        frozen = config.num_hidden_layers - options.train_last
    if options.train_classifier_only:
        frozen = config.num_hidden_layers
    seconds = _train(options, context, config, frozen if options.cache_frozen else 0)
    seconds += context.scored * context.predict(config)
    return float(seconds + (context.latency(config) if options.latency else 0))


def _sweep(options: Any, context: StepContext) -> float:
    config, layers = context.after, context.after.num_hidden_layers
    points = sorted(set(range(layers + 1) if options.points is None else options.points))
    if options.search:
        points = [round(number * layers / 8) for number in range(9)]
    seconds = max(points) / layers * context.predict(config) * (context.train + context.scored)
    for point in points:
        part = max(1 - point / layers, 0.02)
        each = context.train * context.learn(config) + context.rows["validation"] * context.predict(config)
        seconds += options.seeds * options.num_epochs * each * part
    seconds += context.scored * context.predict(config)
    return float(seconds + (context.latency(config) if options.latency else 0))


def _recover(options: Any, context: StepContext) -> float:
    if not options.recover_epochs:
        return 0.0
    epoch = context.train * context.learn(context.after)
    epoch += context.rows.get("validation", 0) * context.predict(context.after)
    teacher = context.train * context.predict(context.before) if options.recover_teacher else 0
    rounds = options.steps if getattr(options, "recover_each_step", False) else 1
    return float(teacher + rounds * options.recover_epochs * epoch)


def _around_pruning(options: Any, context: StepContext) -> float:
    """Scores before and after and of the controls, the proofs, latency, and training afterwards."""
    before, after = context.predict(context.before), context.predict(context.after)
    seconds = context.scored * (before + after) + CONTROL_DRAWS * context.reported * after
    seconds += context.times.process_s + 3 * PROOF_ROWS * before
    seconds += context.both_latencies() if options.latency else 0
    return float(seconds + _recover(options, context))


def _prune(options: Any, context: StepContext) -> float:
    before, after = context.predict(context.before), context.predict(context.after)
    rows = min(options.rows, context.train)
    scoring = {
        "fisher": rows * context.learn(context.before),
        "gradient": rows * context.learn(context.before),
        "ablation": sum(shape.num_attention_heads for shape in context.before.layers) * rows * before,
    }
    seconds = scoring.get(options.method, 0.0) * options.steps if options.keep is None else 0.0
    repair = 2 * min(options.repair_rows, context.train) * before if options.repair else 0.0
    searches = options.max_drop is not None and options.keep is None
    asked = any(options.given().values())
    trials = (1 if asked else SEARCH_TRIALS) if searches else 0
    seconds += trials * context.rows.get("validation", 0) * after
    seconds += repair * (max(1, trials) * options.steps + CONTROL_DRAWS)
    return float(seconds + _around_pruning(options, context))


def _drop_layers(options: Any, context: StepContext) -> float:
    seconds = 0.0
    if options.strategy == "importance" and options.keep is None and options.drop is None:
        count, left = context.before.num_hidden_layers, context.after.num_hidden_layers
        tries = sum(range(left + 1, count + 1)) or count
        seconds = tries * min(options.rows, context.train) * context.predict(context.before)
    if options.max_drop is not None:
        seconds += SEARCH_TRIALS * context.rows.get("validation", 0) * context.predict(context.after)
    return float(seconds + _around_pruning(options, context))


def _distill(options: Any, context: StepContext) -> float:
    teacher, student = context.predict(context.before), context.predict(context.after)
    seconds = (context.scored + context.train) * teacher
    students = 2 if options.control else 1
    seconds += students * (_train(options, context, context.after) + context.scored * student)
    return seconds + (context.both_latencies() if options.latency else 0)


def _compress(options: Any, context: StepContext) -> float:
    """Between the search that needs no training and one that trains all it may."""
    return foresee(options, context).seconds


def _export(options: Any, context: StepContext) -> float:
    rows = context.reported if options.precision == "fp32" else context.scored
    splits = 1 if options.precision == "fp32" else 2
    each = context.predict(context.before)
    seconds = rows * each * (1 + GRAPH_SHARE) + splits * context.times.process_s
    if options.precision == "int8":
        seconds += min(options.calibration_rows, context.train) * each
    if options.latency and options.format == "onnx":
        seconds += context.both_latencies()
    return seconds


def _evaluate(options: Any, context: StepContext) -> float:
    rows = context.rows.get(options.split or "test") or context.reported
    return 2 * rows * context.predict(context.before) + context.times.process_s


def _bench(options: Any, context: StepContext) -> float:
    models = len(options.models)
    cases = len(options.batch_sizes) * (1 if options.data else max(1, len(options.sequence_lengths) or 2))
    seconds = options.min_seconds
    if seconds is None:
        seconds = 1.0 if models == 1 else 3.0
    launches = 1 if models == 1 else options.launches
    runs = sum(options.min_runs * size for size in options.batch_sizes) * context.predict(context.before)
    each = launches * (context.times.process_s + cases * 2.0) + max(cases * seconds, runs) * 1.5
    return float(models * len(options.runtimes) * each)


def _profile(options: Any, context: StepContext) -> float:
    cases = len(options.sequence_lengths) or 6
    return float(context.times.process_s + (cases + 1) * (options.min_seconds + 3))


def _probe(options: Any, context: StepContext) -> float:
    rows = context.scored + context.train
    passes = (1 + options.seeds) * rows * context.predict(context.before)
    fits = 3 * options.seeds * (context.before.num_hidden_layers + 1) * 0.2
    return float(passes + fits)


ESTIMATES: Mapping[str, Callable[[Any, StepContext], float]] = {
    "finetune": _finetune,
    "freeze-sweep": _sweep,
    "prune-heads": _prune,
    "prune-neurons": _prune,
    "drop-layers": _drop_layers,
    "distill": _distill,
    "compress": _compress,
    "export": _export,
    "evaluate": _evaluate,
    "bench": _bench,
    "profile": _profile,
    "probe": _probe,
}
