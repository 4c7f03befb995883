"""Distilled students by number of layers: what is left of the score, what it gains, what it takes.

    python benchmarks/distill.py --run runs/trec6=../shared/data/trec6 --run runs/sst2=../shared/data/sst2 \
        [--layers 6,3] [--progressive 1,2] [--presets auto] [--seeds 2] [--latency] [--json FILE]

A run is a fine-tuned model and the data it was fine-tuned on. For every number of layers, of steps and every
preset a student is distilled as `enc distill` does it, with its control, the same student from labels alone.
Scores are those of the test rows (else of the validation rows). `time` is what the updates and
the teacher's one pass took, in terms of the control's updates: a fine-tuning of the same student.
"""

import argparse
import json
import statistics
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

from recipes.against import SPLITS
from recipes.distill import distill
from recipes.distill_config import DistillConfig
from recipes.result import Result


def main() -> None:
    """Distil every teacher in every way and print a line each, and the means."""
    options = _options()
    rows: list[dict[str, Any]] = []
    print(f"{'':44}  teacher  student  control    kept   points  over control  agreement  time")
    for pair in options.run:
        teacher, _, data = pair.partition("=")
        for seed in range(options.seeds):
            for layers, steps, preset in _ways(options):
                row = _distill(teacher, data, layers, steps, preset, seed, options)
                rows.append(row)
                print(_line(f"{Path(teacher).name}, seed {seed}, {_name(row)}", row), flush=True)
                for shape, ratio in row["speedups"].items():
                    print(f"    batch {shape}: {ratio}", flush=True)
    by_way = defaultdict(list)
    for row in rows:
        by_way[_name(row)].append(row)
    print("\nmean over runs and seeds; the largest loss in points")
    for name, some in by_way.items():
        worst = min(row["student"] - row["teacher"] for row in some) * 100
        mean = {key: statistics.mean(row[key] for row in some) for key in NUMBERS}
        print(f"{_line(name, mean)}  worst {worst:+.2f}")
    if options.json:
        Path(options.json).write_text(json.dumps(rows, indent=1) + "\n")


NUMBERS = ("teacher", "student", "control", "agreement", "time")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--run", action="append", required=True, metavar="MODEL=DATA")
    parser.add_argument("--layers", default="6,3")
    parser.add_argument("--progressive", default="1")
    parser.add_argument("--presets", default="auto")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--num-epochs", type=int, default=3)
    parser.add_argument("--train-rows", type=int, help="of the data's, by hash; otherwise all")
    parser.add_argument("--max-length", type=int)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--latency", action="store_true", help="time students beside teachers, with seed 0")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="any other option")
    parser.add_argument("--json", help="a file for all numbers")
    return parser.parse_args()


def _ways(options: argparse.Namespace) -> list[tuple[int, int, str]]:
    return [
        (int(layers), int(steps), preset)
        for layers in options.layers.split(",")
        for steps in options.progressive.split(",")
        for preset in options.presets.split(",")
    ]


def _distill(
    teacher: str, data: str, layers: int, steps: int, preset: str, seed: int, options: argparse.Namespace
) -> dict[str, Any]:
    more = dict(one.partition("=")[::2] for one in options.set)
    with tempfile.TemporaryDirectory() as folder:
        config: dict[str, Any] = {
            "model": teacher,
            "data": data,
            "output": Path(folder) / "student",
            "layers": layers,
            "progressive": steps,
            "preset": preset,
            "seed": seed,
            "num_epochs": options.num_epochs,
            "train_rows": options.train_rows,
            "max_length": options.max_length,
            "threads": options.threads,
            "latency": options.latency and seed == 0,
        }
        result = distill(DistillConfig(**config | more))
    return {"run": teacher, "layers": layers, "steps": steps, "preset": preset, "seed": seed} | _numbers(
        result
    )


def _numbers(result: Result) -> dict[str, Any]:
    found, metric = result.distillation, result.main_metric
    assert found is not None and found.control is not None and result.training is not None
    split = next(name for name in SPLITS if name in result.scores)
    return {
        "split": split,
        "teacher": found.teacher.scores[split][metric],
        "student": result.scores[split][metric],
        "control": found.control.scores[split][metric],
        "agreement": found.agreement[split],
        "time": (found.target_seconds + result.training.seconds) / found.control.seconds,
        "target_seconds": found.target_seconds,
        "seconds": result.training.seconds,
        "control_seconds": found.control.seconds,
        "speedups": {str(one.shape.batch_size): str(one.speedup) for one in found.speedups},
    }


def _name(row: dict[str, Any]) -> str:
    steps = "" if row["steps"] == 1 else f" in {row['steps']} steps"
    return f"{row['layers']} layers{steps}, {row['preset']}"


def _line(name: str, row: dict[str, Any]) -> str:
    teacher, student, control = row["teacher"], row["student"], row["control"]
    return (
        f"{name:44}  {teacher:7.4f}  {student:7.4f}  {control:7.4f}  {student / teacher:6.1%}  "
        f"{(student - teacher) * 100:+6.2f}  {(student - control) * 100:+12.2f}  {row['agreement']:9.1%}  "
        f"{row['time']:.2f}"
    )


if __name__ == "__main__":
    main()
