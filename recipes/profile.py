"""Where a model's time goes: a `ProfileConfig` in, a `ProfileResult` out."""

import time

from compress.profile import Profile, ProfileRow, profile_latency, profile_lengths
from recipes.account import describe_run
from recipes.inputs import make_workload, read_inputs
from recipes.measurements import ProfileResult
from recipes.observer import Observer, Recorder, Silent
from recipes.profile_config import ProfileConfig
from recipes.result import describe_model, describe_parent, save_run

# Shares that lie closer together than this, in proportion, are called about equal.
ABOUT_EQUAL = 0.15


def profile(config: ProfileConfig, observer: Observer | None = None) -> ProfileResult:
    """The time of each sublayer at each length, and on the data's own lengths; what to prune.

    Raises:
        ConfigError, DataError, CheckpointError: before anything is measured.
    """
    started = time.perf_counter()
    recorder = Recorder(observer or Silent())
    inputs = read_inputs([config.model], config, recorder, other_devices="cpu")
    (model,) = inputs.models
    lengths = sorted(config.sequence_lengths) or profile_lengths(model.max_tokens)
    workload = make_workload([model], [config.batch_size], lengths, inputs.rows)

    recorder.stage("Measuring each sublayer, in a process of its own")
    measured = profile_latency(
        model.folder,
        workload,
        runtime=config.runtime,
        device=config.device,
        threads=config.threads,
        min_runs=config.min_runs,
        min_seconds=config.min_seconds,
        progress=lambda done, total, what: recorder.working(done, total),
    )
    result = ProfileResult(
        **describe_run(
            "profile",
            config,
            seconds=time.perf_counter() - started,
            output=config.output,
            seed=0,
            parent=describe_parent(model.source, model.folder),
            notes=recorder.notes,
        ),
        model=describe_model(model.source, model.folder, model, model.max_length()),
        data=inputs.texts,
        profile=measured,
        advice=advise(measured),
    )
    save_run(result, inputs.folder)
    return result


def advise(profile: Profile) -> str:
    """Whether heads or neurons are the better thing to prune, on the data, or without any by length."""
    for row in profile.rows:
        if row.shape.sequence_length is None:
            return _advise_on("On the lengths of this data", row)
    longest = max(profile.rows, key=lambda row: row.shape.sequence_length or 0)
    shortest = min(profile.rows, key=lambda row: row.shape.sequence_length or 0)
    at = profile.overtakes_at
    if longest is shortest or at is None or at <= (shortest.shape.sequence_length or 0):
        where = f"At {longest.shape.sequence_length} tokens"
        if longest is not shortest:
            where = f"At all lengths measured, as at {longest.shape.sequence_length} tokens"
        return _advise_on(where, longest)
    return (
        f"Up to about {at:.0f} tokens the feed-forward blocks take longer than attention: prune neurons for "
        f"shorter texts, heads for longer ones. --data tells which of them yours are."
    )


def _advise_on(where: str, row: ProfileRow) -> str:
    attention, feed_forward = row.attention_share, row.feed_forward_share
    shares = (
        f"{where} attention takes {attention:.0%} of the time, the feed-forward blocks {feed_forward:.0%}"
    )
    if abs(attention - feed_forward) < ABOUT_EQUAL * max(attention, feed_forward):
        return f"{shares}: about equal, so heads and neurons are equally worth pruning."
    if attention > feed_forward:
        what, most = "heads are the better thing to prune", attention
    else:
        what, most = "neurons are the better thing to prune", feed_forward
    return f"{shares}: {what}. Without half of them a run takes {most / 2:.0%} less time at best."
