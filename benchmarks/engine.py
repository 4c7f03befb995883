"""What each piece of the training engine is worth: a step with one piece off beside a step with all on.

    python benchmarks/engine.py --model ../shared/models/e5-small-12l --data ../shared/data/trec6 \
        [--steps 8] [--batch-size 32] [--max-length 128] [--turns 3] [--threads 2] [--pieces blocks,bf16]

Every measurement is a process of its own: a piece may leave kernels or holes behind, which would count as the
memory of the next. Its first pass over the rows warms up, the second is measured. The pieces take turns, in
each turn in another order; every turn sees the same batches, and each batch counts with its fastest turn,
which is the one that was disturbed least. CPU seconds are those of all threads together.

The peer of ``packed`` is rows filled up to the longest of their batch; of ``frozen cache`` the same training
with half the layers frozen and computed again in every epoch.
"""

import argparse
import copy
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import torch

from compress.memory import peak_memory_bytes, reset_peak_memory
from encoder.batches import shuffled_batches
from encoder.checkpoint import load_classifier
from encoder.data import DataOptions, read_data
from encoder.engine import ALL_ON, Engine
from encoder.freezing import Freezing, freeze_
from encoder.frozen_prefix import FrozenPrefix
from encoder.model import Classifier
from encoder.model_folder import read_tokenizer
from encoder.prediction import Precision
from encoder.rows import TokenizedRows, offsets_of, token_index
from encoder.training import train_
from encoder.training_config import TrainingConfig

EPOCHS_OF_FROZEN = 3


@dataclass(frozen=True)
class Variant:
    """A way to train: which pieces are in use. ``frozen``: with half the layers frozen, for more epochs."""

    engine: Engine = ALL_ON
    precision: Precision = "bf16"
    packed: bool = True
    frozen: bool = False
    cached: bool = True


ON, FROZEN = Variant(), Variant(frozen=True)
WITHOUT = {
    "packed": replace(ON, packed=False),
    "bf16": replace(ON, precision="fp32"),
    **{name: replace(ON, engine=Engine(**{name: False})) for name in Engine.model_fields},
    "frozen cache": replace(FROZEN, cached=False),
}


@dataclass(frozen=True)
class Measured:
    """Of each step the seconds, and the CPU seconds of all threads; the peak memory of the process."""

    seconds: list[float]
    cpu_seconds: list[float]
    peak_bytes: int


def main() -> None:
    """Measure all pieces in turn and print a table."""
    options = _options()
    pieces = list(WITHOUT) if options.pieces is None else options.pieces.split(",")
    variants = [ON, *(WITHOUT[name] for name in pieces)]
    variants += [FROZEN] * any(variant.frozen for variant in variants)
    measured: dict[Variant, list[Measured]] = {variant: [] for variant in variants}
    for turn in range(options.turns):
        print(f"turn {turn + 1} of {options.turns}", file=sys.stderr)
        for variant in variants[turn:] + variants[:turn]:
            measured[variant].append(_in_a_process(variant, options))
    print(
        f"{options.model}, {options.data}: {options.steps} steps of {options.batch_size} rows, at most "
        f"{options.max_length} tokens, {options.threads} threads, the best of {options.turns} turns"
    )
    print(
        f"{'off':24}{'ms a step':>10}{'CPU ms':>10}{'peak MB':>10}{'off/on: time':>14}{'CPU':>8}{'memory':>8}"
    )
    for name, variant in (("nothing", ON), *((name, WITHOUT[name]) for name in pieces)):
        if variant.frozen:
            print(_line(f"{name}: on", _best(measured[FROZEN]), None))
        base = FROZEN if variant.frozen else ON
        print(_line(name, _best(measured[variant]), None if variant == base else _best(measured[base])))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--max-length", type=int, default=128)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--pieces", help=f"some of {', '.join(WITHOUT)}; otherwise all")
    return parser.parse_args()


def _in_a_process(variant: Variant, options: argparse.Namespace) -> Measured:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(_measure, variant, options).result()


def _measure(variant: Variant, options: argparse.Namespace) -> Measured:
    torch.set_num_threads(options.threads)
    model, rows = _load(options)
    freeze_(model, Freezing(layers=model.config.num_hidden_layers // 2 if variant.frozen else 0))
    config = TrainingConfig(
        num_epochs=EPOCHS_OF_FROZEN if variant.frozen else 1,
        batch_size=options.batch_size,
        learning_rate=1e-4,
        precision=variant.precision,
    )
    if not variant.packed:
        rows = _filled_up(rows, config)
    _train(copy.deepcopy(model), rows, config, variant)
    reset_peak_memory()
    times = np.array(_train(model, rows, config, variant))
    seconds, cpu_seconds = np.diff(times, axis=0).T
    return Measured(seconds.tolist(), cpu_seconds.tolist(), peak_memory_bytes())


def _load(options: argparse.Namespace) -> tuple[Classifier, TokenizedRows]:
    folder = Path(options.model)
    data = read_data(options.data, DataOptions(label_variants="keep"))
    index = np.random.default_rng(0).permutation(len(data.texts("train")))
    index = index[: options.steps * options.batch_size]
    texts, labels = data.texts("train"), data.labels("train")
    rows, _ = read_tokenizer(folder).encode([texts[row] for row in index], max_length=options.max_length)
    return load_classifier(folder, task=data.task), replace(rows, labels=labels[index])


def _filled_up(rows: TokenizedRows, config: TrainingConfig) -> TokenizedRows:
    """Each row with tokens up to the longest of its batch, as a padded batch computes them."""
    lengths = rows.lengths.copy()
    for index in shuffled_batches(len(rows), config.batch_size, seed=config.seed, epoch=0):
        lengths[index] = lengths[index].max()
    offsets = offsets_of(lengths)
    ids, types = np.zeros(offsets[-1], np.int32), np.zeros(offsets[-1], np.int8)
    places = token_index(offsets[:-1], rows.lengths)
    ids[places], types[places] = rows.input_ids, rows.token_type_ids
    return replace(rows, input_ids=ids, token_type_ids=types, offsets=offsets)


def _train(
    model: Classifier, rows: TokenizedRows, config: TrainingConfig, variant: Variant
) -> list[tuple[float, float]]:
    """Train, and tell the time and the CPU time at the start and after each step."""
    times = [_now()]
    with (
        tempfile.TemporaryDirectory() as folder,
        FrozenPrefix(rows, precision=config.precision) as prefix,
    ):
        if variant.frozen and variant.cached:
            prefix.go_to(model, model.config.num_hidden_layers // 2)
        train_(
            model, prefix.rows, None, config, work_folder=Path(folder), engine=variant.engine,
            on_progress=lambda progress: times.append(_now()),
        )  # fmt: skip
    return times


def _now() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def _best(runs: list[Measured]) -> tuple[float, float, float]:
    """The mean step, each step as its fastest turn: seconds, CPU seconds; and the least peak memory."""
    seconds = np.min([run.seconds for run in runs], axis=0).mean()
    cpu_seconds = np.min([run.cpu_seconds for run in runs], axis=0).mean()
    return float(seconds), float(cpu_seconds), min(run.peak_bytes for run in runs)


def _line(name: str, off: tuple[float, float, float], on: tuple[float, float, float] | None) -> str:
    seconds, cpu_seconds, peak = off
    ratios = (
        "" if on is None else f"{seconds / on[0]:>13.2f}x{cpu_seconds / on[1]:>7.2f}x{peak / on[2]:>7.2f}x"
    )
    return f"{name:24}{seconds * 1e3:>10.1f}{cpu_seconds * 1e3:>10.1f}{peak / 2**20:>10.0f}{ratios}"


if __name__ == "__main__":
    main()
