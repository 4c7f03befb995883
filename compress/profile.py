"""Where the time goes: attention, feed-forward, embeddings and the rest, beside their share of the work.

The number that says whether to prune heads or neurons, at the lengths one has.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from pydantic import BaseModel, ConfigDict

from compress.contention import is_disturbed
from compress.latency import Progress, check_repeats, device_name
from compress.process import default_threads
from compress.runtimes import check_names, runs_a_graph, why_unavailable
from compress.sessions import Sessions
from compress.size import macs_per_row
from compress.stopwatch import PARTS, PartTimes
from compress.workload import Case, Shape, Workload
from encoder.config import EncoderConfig
from encoder.errors import CheckpointError, ConfigError
from encoder.model_folder import read_config, read_task

ATTENTION = ("projections", "scores and mixing")
FEED_FORWARD = "feed-forward"
SHORTEST, LONGEST = 16, 512  # of the lengths that nobody asked for


class ProfileRow(BaseModel):
    """Where the time of a run goes for one shape of inputs.

    ``part_ms`` is milliseconds a run for each of ``PARTS``; ``shares`` the same as fractions of their sum;
    ``mac_shares`` the fractions of the multiply-accumulates. ``steady`` and ``cpu_wait`` as in ``Latency``.
    """

    model_config = ConfigDict(frozen=True)

    shape: Shape
    part_ms: dict[str, float]
    shares: dict[str, float]
    mac_shares: dict[str, float]
    steady: bool = True
    cpu_wait: float | None = None

    @property
    def is_reliable(self) -> bool:
        """Whether the runs were steady and other processes left the cores to them."""
        return self.steady and not is_disturbed(self.cpu_wait)

    @property
    def attention_share(self) -> float:
        """The fraction of the time that attention takes, projections included."""
        return sum(self.shares[part] for part in ATTENTION)

    @property
    def feed_forward_share(self) -> float:
        """The fraction of the time that the feed-forward blocks take."""
        return self.shares[FEED_FORWARD]


class Profile(BaseModel):
    """Where the time goes, a row for each case.

    ``overtakes_at`` is the number of tokens from which on attention takes longer than feed-forward,
    interpolated between the lengths measured; ``None`` if it does not up to the longest.
    ``overtakes_at_macs`` is the same by arithmetic alone, where it may lie beyond what the model can read;
    ``None`` for a model without attention.
    """

    model_config = ConfigDict(frozen=True)

    rows: tuple[ProfileRow, ...]
    overtakes_at: float | None
    overtakes_at_macs: float | None
    runtime: str
    device: str
    device_name: str
    threads: int


def profile_lengths(max_tokens: int) -> list[int]:
    """16, 32, 64 … 512; of a model that reads less, up to its limit ``max_tokens``."""
    longest = min(LONGEST, max_tokens)
    lengths = [SHORTEST * 2**power for power in range(32) if SHORTEST * 2**power < longest]
    return [*lengths, longest]


def profile_latency(
    model_folder: Path,
    workload: Workload,
    *,
    runtime: str = "torch-fp32",
    device: str = "cpu",
    threads: int | None = None,
    min_runs: int = 20,
    min_seconds: float = 1.0,
    progress: Progress | None = None,
) -> Profile:
    """Time each sublayer of the model in ``model_folder``, in a process of its own.

    Raises:
        ConfigError: a runtime or device that does not exist, or in which sublayers cannot be told apart.
        CheckpointError: ``model_folder`` holds no classifier.
    """
    check_names([runtime], [device])
    check_repeats(min_runs, min_seconds)
    if runs_a_graph(runtime):
        raise ConfigError(f"{runtime} runs a graph as a whole; profile it in torch-fp32 or torch-bf16")
    reason = why_unavailable(runtime, device)
    if reason is not None:
        raise ConfigError(f"{device}: {reason}")
    threads = default_threads(threads)
    config, task = read_config(model_folder), read_task(model_folder)
    if task is None:
        raise CheckpointError(f"{model_folder}: an encoder without a classifier; fine-tune it first")
    rows = []
    with (
        Sessions(workload, threads=threads) as sessions,
        sessions.open(runtime, model_folder, device=device) as worker,
    ):
        for index, case in enumerate(workload.cases):
            if progress is not None:
                progress(index, len(workload.cases), str(case.shape))
            answer = worker.ask("profile", case=index, min_runs=min_runs, min_seconds=min_seconds)
            rows.append(make_row(case, config, PartTimes(**answer), num_outputs=task.num_outputs))
    return Profile(
        rows=tuple(rows),
        overtakes_at=overtaking_length(rows),
        overtakes_at_macs=overtaking_length_by_macs(config),
        runtime=runtime,
        device=device,
        device_name=device_name(device),
        threads=threads,
    )


def make_row(case: Case, config: EncoderConfig, times: PartTimes, *, num_outputs: int) -> ProfileRow:
    """The row of a case whose parts took ``times``."""
    seconds = times.seconds
    macs = dict.fromkeys(PARTS, 0)
    for batch in case.batches:
        for length, count in zip(*np.unique(batch.lengths, return_counts=True), strict=True):
            for part, number in macs_per_row(config, int(length), num_outputs=num_outputs).items():
                macs["rest" if part == "classifier" else part] += number * int(count)
    return ProfileRow(
        shape=case.shape,
        part_ms={part: seconds[part] * 1e3 for part in PARTS},
        shares={part: seconds[part] / sum(seconds.values()) for part in PARTS},
        mac_shares={part: macs[part] / sum(macs.values()) for part in PARTS},
        steady=times.steady,
        cpu_wait=times.cpu_wait,
    )


def overtaking_length(rows: Sequence[ProfileRow]) -> float | None:
    """From how many tokens on attention takes longer than feed-forward; ``None`` if it never does.

    Looks at the rows of fixed length. At short lengths overheads can put attention in front once before, so
    what counts is the last length at which it is behind; the crossing after it is interpolated, both axes
    logarithmic.
    """
    fixed = sorted(
        (row.shape.sequence_length, row.attention_share / max(row.feed_forward_share, 1e-12))
        for row in rows
        if row.shape.sequence_length is not None
    )
    behind = [index for index, (_, ratio) in enumerate(fixed) if ratio < 1]
    if not fixed or (behind and behind[-1] == len(fixed) - 1):
        return None
    if not behind:
        return float(fixed[0][0])
    (short, low), (long, high) = fixed[behind[-1]], fixed[behind[-1] + 1]
    if low <= 0:
        return float(long)
    fraction = -np.log(low) / (np.log(high) - np.log(low))
    return float(short * (long / short) ** fraction)


def overtaking_length_by_macs(config: EncoderConfig) -> float | None:
    """The number of tokens at which attention needs as much arithmetic as feed-forward does.

    4·D·W + 2·T·W = 2·D·F, W being all heads' width and F all neurons, over the layers that compute every
    token: all but the last, of which the classifier sees one. A gated neuron counts one and a half times, and
    a local layer stops to grow at its window. At least 1; ``None`` for a model without attention, or if local
    layers never get there.
    """
    layers = config.layers[:-1] or config.layers
    neurons = sum(layer.intermediate_size for layer in layers) * (1.5 if config.gated else 1)
    widths = [(layer.num_attention_heads * layer.head_size, layer.window) for layer in layers]
    width = sum(one for one, _ in widths)
    if width == 0:
        return None
    spare = config.hidden_size * (neurons - 2 * width)  # what scores and mixing, T·W, have to come up to
    length = max(1.0, spare / width)
    if all(window is None or length <= window + 1 for _, window in widths):
        return length
    local = sum((2 * window + 1) * one for one, window in widths if window is not None)
    growing = sum(one for one, window in widths if window is None)
    return max(1.0, (spare - local) / growing) if growing else None
