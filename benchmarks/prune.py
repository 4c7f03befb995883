"""Scores of pruned models by sparsity, method, repair and recovery; the mean over several models.

    python benchmarks/prune.py --run runs/trec6=../shared/data/trec6 --run runs/sst2=../shared/data/sst2 \
        [--unit heads] [--sparsities 0.2,0.4,0.6,0.8] [--methods fisher,gradient,random] [--seeds 2] \
        [--recover-epochs 1] [--both]

A run is a fine-tuned model and the data it was fine-tuned on. Importance and repair look at training rows,
scores are those of the test rows (or of the validation rows where there are none). A seed decides which
training rows are drawn, what the random control removes, and the order of the recovery training.
`--normalize` adds the methods with importances divided by the norm of their layer. `--both` instead removes
40 % of the heads and 50 % of the neurons, with repair and one recovery epoch, and measures how much faster
that is at batch size 32.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from compress.comparison import compare_latency
from compress.importance import Method, Scores, score_units
from compress.paired import Speedup
from compress.pruning import remove
from compress.selection import count_kept, select_units
from compress.units import Unit, unit_counts
from compress.workload import from_rows
from encoder.checkpoint import load_classifier, save_classifier
from encoder.data import DataOptions, read_data
from encoder.metrics import main_metric, score
from encoder.model import Classifier
from encoder.model_folder import read_tokenizer
from encoder.optimizer import usual_learning_rate
from encoder.prediction import predict_logits
from encoder.rows import TokenizedRows
from encoder.tokenizer import Tokenizer
from encoder.training import train_
from encoder.training_config import TrainingConfig
from recipes.observer import Silent
from recipes.scoring import choose_precision, tokenize

PLAIN, REPAIRED, RECOVERED = "as it is", "repaired", "recovered"
HEADS_GONE, NEURONS_GONE, BATCH_SIZE = 0.4, 0.5, 32
PRECISION = choose_precision("auto", "cpu")
# Rows that are timed: on all of a test split a pass takes ten seconds, and dozens are needed.
TIMED_ROWS = 8 * BATCH_SIZE


@dataclass
class Run:
    """A fine-tuned model with its rows; ``name`` is that of its folder."""

    name: str
    folder: Path
    model: Classifier
    tokenizer: Tokenizer
    train: TokenizedRows
    reported: TokenizedRows

    def draw(self, rows: int, seed: int) -> TokenizedRows:
        """So many training rows by ``seed``."""
        return self.train.select(np.random.default_rng(seed).permutation(len(self.train))[:rows])

    def score(self, model: Classifier) -> float:
        """The main metric of ``model`` on the reported rows."""
        task, labels = model.task, self.reported.labels
        assert labels is not None
        return score(task, predict_logits(model, self.reported), labels)[main_metric(task)]


def main() -> None:
    """Prune every model in every way and print the tables."""
    options = _options()
    table: dict[tuple[str, str, float], list[float]] = defaultdict(list)
    for pair in options.run:
        run = _load(pair, options)
        whole = run.score(run.model)
        print(f"{run.name}: {whole:.4f} on {len(run.reported):,} rows, {len(run.train):,} to train on")
        for seed in range(options.seeds):
            pruned = _prune_both if options.both else _prune
            for name, treatment, sparsity, found in pruned(run, options, seed):
                table[name, treatment, sparsity].append(found - whole)
                print(f"  seed {seed}  {name:20} {treatment:9} {sparsity:4.0%}  {found:.4f}", flush=True)
    if table:
        _print_means(table, options)
    if options.json:
        rows = [[*key, *values] for key, values in table.items()]
        Path(options.json).write_text(json.dumps(rows, indent=1) + "\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--run", action="append", required=True, metavar="MODEL=DATA")
    parser.add_argument("--unit", choices=["heads", "neurons"], default="heads")
    parser.add_argument("--sparsities", default="0.2,0.4,0.6,0.8")
    parser.add_argument("--methods", default="fisher,gradient,random")
    parser.add_argument("--normalize", action="store_true")
    parser.add_argument("--scope", choices=["global", "layer"], default="global")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--rows", type=int, default=1024, help="training rows for importance")
    parser.add_argument("--repair-rows", type=int, default=512, help="0: no repair")
    parser.add_argument("--recover-epochs", type=int, default=0)
    parser.add_argument("--train-rows", type=int, default=0, help="of the data's, by hash; 0: all")
    parser.add_argument("--test-rows", type=int, default=0, help="the first of them; 0: all")
    parser.add_argument("--max-length", type=int, default=128)
    parser.add_argument("--both", action="store_true", help="heads and neurons, recovered and timed")
    parser.add_argument("--json", help="a file for the differences of score")
    return parser.parse_args()


def _load(pair: str, options: argparse.Namespace) -> Run:
    source, _, data_source = pair.partition("=")
    folder = Path(source)
    model, tokenizer = load_classifier(folder), read_tokenizer(folder)
    data = read_data(data_source, DataOptions(train_rows=options.train_rows or None), task=model.task)
    split = "test" if "test" in data.splits else "validation"
    length = min(options.max_length, tokenizer.max_length)
    splits = tokenize(data, tokenizer, max_length=length, names=["train", split], observer=Silent())
    reported = splits.rows[split]
    if options.test_rows:
        reported = reported.select(np.arange(min(len(reported), options.test_rows)))
    return Run(folder.name, folder, model, tokenizer, splits.rows["train"], reported)


def _prune(run: Run, options: argparse.Namespace, seed: int) -> Iterator[tuple[str, str, float, float]]:
    """Method, treatment, sparsity, score."""
    unit: Unit = options.unit
    rows = run.draw(options.rows, seed)
    repair = run.draw(options.repair_rows, seed) if options.repair_rows else None
    total = sum(unit_counts(run.model.config, unit))
    for name, scores in _score(run, rows, options, seed):
        for sparsity in (float(one) for one in options.sparsities.split(",")):
            kept = select_units(scores, count_kept(total, sparsity), scope=options.scope)
            made = remove(run.model, run.model, unit, kept, None)
            yield name, PLAIN, sparsity, run.score(made)
            if repair is not None:
                made = remove(run.model, run.model, unit, kept, repair)
                yield name, REPAIRED, sparsity, run.score(made)
            if options.recover_epochs:
                _recover_(made, run, options.recover_epochs, seed)
                yield name, RECOVERED, sparsity, run.score(made)


def _score(
    run: Run, rows: TokenizedRows, options: argparse.Namespace, seed: int
) -> Iterator[tuple[str, Scores]]:
    methods: list[Method] = options.methods.split(",")
    for method in methods:
        started = time.perf_counter()
        scores = score_units(run.model, rows, options.unit, method, seed=seed, precision=PRECISION)
        print(f"  {method}: {time.perf_counter() - started:.1f} s", file=sys.stderr)
        yield method, scores
        if options.normalize and method != "random":
            yield f"{method}, normalized", [one / max(1e-30, float(np.linalg.norm(one))) for one in scores]


def _recover_(model: Classifier, run: Run, epochs: int, seed: int) -> None:
    config = TrainingConfig(
        num_epochs=epochs,
        learning_rate=usual_learning_rate(model.config.hidden_size),
        precision=PRECISION,
        seed=seed,
    )
    with tempfile.TemporaryDirectory() as folder:
        train_(model, run.train, None, config, work_folder=Path(folder))


def _prune_both(run: Run, options: argparse.Namespace, seed: int) -> Iterator[tuple[str, str, float, float]]:
    """As ``_prune``, of heads and neurons; and how much faster that is. The sparsity is that of the heads."""
    rows, repair = run.draw(options.rows, seed), run.draw(options.repair_rows or 512, seed)
    made, name = run.model, f"and {NEURONS_GONE:.0%} of neurons"
    shares: tuple[tuple[Unit, float], ...] = (("heads", HEADS_GONE), ("neurons", NEURONS_GONE))
    for unit, share in shares:
        scores = score_units(made, rows, unit, "fisher", precision=PRECISION)
        kept = select_units(scores, count_kept(sum(unit_counts(made.config, unit)), share))
        made = remove(made, run.model, unit, kept, repair)
    yield name, REPAIRED, HEADS_GONE, run.score(made)
    _recover_(made, run, max(1, options.recover_epochs), seed)
    yield name, RECOVERED, HEADS_GONE, run.score(made)
    print(f"  seed {seed}  at batch {BATCH_SIZE} {_measure_speedup(run, made)}", flush=True)


def _measure_speedup(run: Run, made: Classifier) -> Speedup:
    timed = run.reported.select(np.arange(min(len(run.reported), TIMED_ROWS)))
    with tempfile.TemporaryDirectory() as name:
        save_classifier(made, run.tokenizer, Path(name))
        compared = compare_latency([run.folder, Path(name)], from_rows(timed, [BATCH_SIZE]), launches=4)
    return compared.compared[0].speedup


def _print_means(table: dict[tuple[str, str, float], list[float]], options: argparse.Namespace) -> None:
    """Points of score against the whole model, the mean over runs and seeds."""
    sparsities = sorted({sparsity for _, _, sparsity in table})
    removed = "heads" if options.both else options.unit
    print(f"\n{removed} removed; points of score against the whole model, mean over runs and seeds")
    print(f"{'':32}" + "".join(f"{sparsity:>9.0%}" for sparsity in sparsities))
    for name, treatment in dict.fromkeys((name, treatment) for name, treatment, _ in table):
        cells = (statistics.mean(table[name, treatment, sparsity]) * 100 for sparsity in sparsities)
        print(f"{name + ', ' + treatment:32}" + "".join(f"{cell:>+9.2f}" for cell in cells))


if __name__ == "__main__":
    main()
