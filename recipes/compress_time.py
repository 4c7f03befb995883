"""How long a compression takes, part by part: counted as it works, by the times of a trial."""

from collections.abc import Iterator

from compress.latency_probing import CALIBRATION_ROWS, count_graphs, count_timings, timing_seconds
from recipes.compress_candidates import (
    IMPORTANCE_TOKENS,
    REPAIR_ROWS,
    REPAIR_TOKENS,
    SCORED_ROWS,
    SCORED_TOKENS,
    layer_counts,
)
from recipes.compress_config import CompressConfig
from recipes.compress_search import MOST_UNTRAINED
from recipes.forecast import Forecast, Work
from recipes.plan_context import GRAPH_SHARE, StepContext

# What is tried in earnest is about this share of the model.
TRIED_SHARE = 0.6
# Least squares, beside a prediction of the same rows by the original: 2.7 with 12 layers of 384.
REPAIR_COST = 2.7
# In parts of the time that a fresh process takes: a graph written and rewritten in 8 bits; the same with one
# of those that are timed for the table, which have few words; and such a one opened.
GRAPH_WRITING, TABLE_WRITING, TABLE_OPENING = 0.4, 0.05, 0.04


def foresee(
    config: CompressConfig, context: StepContext, *, has_table: bool = False, busy: bool = False
) -> Forecast:
    """What a compression with ``config`` will do; ``has_table``: its latency table is known already.

    ``busy``: other processes have the cores, so that what they disturb is timed again.
    ``context.before`` is the model. How many candidates have to be exported or trained is found out on the
    way; that of several parts in int8 some may have to be kept in float is not foreseen.
    """
    return Forecast(tuple(_works(config, context, has_table, busy)))


def _works(config: CompressConfig, context: StepContext, has_table: bool, busy: bool) -> Iterator[Work]:
    shape, each = context.before, context.predict(context.before)
    if has_table:
        yield Work("the latency table is known, and the original is timed", 2 * context.times.process_s)
    else:
        timings = count_timings(shape)
        seconds = _table_seconds(context, timings, busy)
        yield Work(f"latency table of this machine, {timings} timings", seconds)
    rows = _limited(min(config.rows, context.train), IMPORTANCE_TOKENS, context)
    yield Work(f"importance of heads and neurons, {rows:,} training rows", 2 * rows * context.learn(shape))
    yield _scoring(context)
    export = context.rows.get("validation", 0) * each * TRIED_SHARE * (1 + GRAPH_SHARE)
    export += context.times.process_s * (1 + GRAPH_WRITING) + context.both_latencies()
    if busy:  # and once more by its shortest runs
        export += 2 * (context.times.process_s + timing_seconds(GRAPH_SHARE * each, busy=True))
    most = MOST_UNTRAINED + config.max_candidates
    yield Work("a candidate exported, proven and timed in turns with the original", export, 1, most)
    if config.max_candidates:
        yield Work("answers of the original as the teacher", context.train * each, 0, 1)
        epoch = TRIED_SHARE * (context.train * context.learn(shape))
        epoch += TRIED_SHARE * context.rows.get("validation", 0) * each
        epochs = f"{config.num_epochs} epoch{'' if config.num_epochs == 1 else 's'}"
        yield Work(f"a candidate trained, {epochs}", config.num_epochs * epoch, 0, config.max_candidates)
    scored = context.scored * TRIED_SHARE * (1 + GRAPH_SHARE) * each
    yield Work("the result scored on all rows", scored + context.times.process_s)


def _table_seconds(context: StepContext, timings: int, busy: bool) -> float:
    """The original timed, the graphs written, each of them timed: half as deep, on average half full."""
    process, each = context.times.process_s, context.predict(context.before)
    writing = count_graphs(context.before) * (process * TABLE_WRITING + CALIBRATION_ROWS * each / 2)
    timing = process * TABLE_OPENING + timing_seconds(GRAPH_SHARE * each / 4, busy=busy)
    return 3 * process + writing + timings * timing


def _scoring(context: StepContext) -> Work:
    """All numbers of layers, each with all units and with fewer of them, which are repaired first."""
    shape = context.before
    counts = layer_counts(shape.num_hidden_layers)
    rows = _limited(min(SCORED_ROWS, context.rows.get("validation", 0)), SCORED_TOKENS, context)
    repair = _limited(min(REPAIR_ROWS, context.train), REPAIR_TOKENS, context)
    share = sum(counts) / shape.num_hidden_layers
    seconds = context.predict(shape) * (rows + share * (2 * rows + REPAIR_COST * repair))
    models = 2 * len(counts) + 1
    return Work(f"about {models} candidates scored on {rows:,} validation rows, without training", seconds)


def _limited(rows: int, tokens: int, context: StepContext) -> int:
    """``rows``, or as many as have so many tokens together."""
    return max(1, min(rows, round(tokens / max(1.0, context.tokens)))) if rows else 0
