"""Exports of a model and of what is made of it, each proven: whole, pruned, with fewer layers, distilled.

    python benchmarks/parity.py --run runs/trec6=../shared/data/trec6 [--run …] \
        [--variants whole,heads,neurons,layers,distilled] [--exports portable,fused,int8] [--threads 1]

A run is a fine-tuned model and the data it was fine-tuned on. Made of it, each by its own recipe: 40 % of the
heads removed, half of the neurons removed (both repaired, neither trained), every second layer dropped, and
six layers distilled for one epoch. Each is exported and proven as `enc export` does it, by a fresh process on
all validation and test rows. The largest difference of a logit and the share of rows with the same label are
those of the test rows (validation rows where there are none); so is the loss in points, whereas `gate` says
whether `enc export` lets the folder pass.
"""

import argparse
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from recipes.against import SPLITS
from recipes.distill import distill
from recipes.distill_config import DistillConfig
from recipes.drop_layers import drop_layers
from recipes.drop_layers_config import DropLayersConfig
from recipes.export import export
from recipes.export_config import ExportConfig
from recipes.prune_heads import prune_heads
from recipes.prune_heads_config import PruneHeadsConfig
from recipes.prune_neurons import prune_neurons
from recipes.prune_neurons_config import PruneNeuronsConfig

# Name → the options of the folder that is made of a model, and the recipe with its config.
Maker = tuple[Callable[[Any], object], type[Any], dict[str, Any]]
MAKERS: dict[str, Maker] = {
    "heads": (prune_heads, PruneHeadsConfig, {"sparsity": 0.4}),
    "neurons": (prune_neurons, PruneNeuronsConfig, {"sparsity": 0.5}),
    "layers": (drop_layers, DropLayersConfig, {"layers": 6, "strategy": "alternate"}),
    "distilled": (distill, DistillConfig, {"layers": 6, "num_epochs": 1, "control": False}),
}
EXPORTS: dict[str, dict[str, Any]] = {
    "portable": {"graph": "portable"},
    "fused": {"graph": "fused"},
    "int8": {"graph": "fused", "precision": "int8"},
}


def main() -> None:
    """Print a line for each export, and the worst of each kind."""
    options = _options()
    rows: list[dict[str, Any]] = []
    print(
        f"{'model':24}  {'made':10}  {'export':9}  {'largest':>9}  {'labels':>8}  {'score':>7}  points  "
        "in float  gate"
    )
    for pair in options.run:
        model, _, data = pair.partition("=")
        for variant in options.variants:
            with tempfile.TemporaryDirectory() as work:
                folder = _make(variant, model, data, Path(work), options)
                for name in options.exports:
                    row = {"run": Path(model).name, "variant": variant, "export": name}
                    rows.append(row | _export(name, folder, data, Path(work), options))
                    print(_line(rows[-1]), flush=True)
    print()
    for name in options.exports:
        some = [row for row in rows if row["export"] == name]
        print(
            f"{name}: logits differ by {max(row['difference'] for row in some):.1e} at most, labels are the "
            f"same for {min(row['agreement'] for row in some):.2%} at least, the score loses "
            f"{max(-row['points'] for row in some):.2f} points at most, "
            f"{sum(row['passed'] for row in some)} of {len(some)} pass"
        )
    if options.json:
        Path(options.json).write_text(json.dumps(rows, indent=1) + "\n")


def _options() -> argparse.Namespace:
    def names(text: str) -> list[str]:
        return text.split(",")

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--run", action="append", required=True, metavar="MODEL=DATA")
    parser.add_argument("--variants", type=names, default=["whole", *MAKERS])
    parser.add_argument("--exports", type=names, default=list(EXPORTS))
    parser.add_argument("--threads", type=int)
    parser.add_argument("--json", help="a file for all numbers")
    return parser.parse_args()


def _make(variant: str, model: str, data: str, work: Path, options: argparse.Namespace) -> str:
    """The folder of what is made of ``model``."""
    if variant == "whole":
        return model
    recipe, config, more = MAKERS[variant]
    output = work / "made"
    recipe(config(model=model, data=data, output=output, latency=False, threads=options.threads, **more))
    return str(output)


def _export(name: str, folder: str, data: str, work: Path, options: argparse.Namespace) -> dict[str, Any]:
    result = export(
        ExportConfig(
            model=folder,
            data=data,
            output=work / name,
            latency=False,
            threads=options.threads,
            **EXPORTS[name],
        )
    )
    found, metric = result.export, result.main_metric
    assert found is not None
    split = next(one for one in SPLITS if one in found.parity)
    parity = found.parity[split]
    before, after = found.before[split][metric], result.scores[split][metric]
    assert parity.max_difference is not None and before is not None and after is not None
    return {
        "split": split,
        "rows": parity.rows,
        "difference": parity.max_difference,
        "agreement": parity.agreement if parity.agreement is not None else 1.0,
        "score": after,
        "points": (after - before) * 100,
        "in_float": len(found.kept_in_float),
        "passed": not found.failures,
    }


def _line(row: dict[str, Any]) -> str:
    return (
        f"{row['run']:24}  {row['variant']:10}  {row['export']:9}  {row['difference']:9.1e}  "
        f"{row['agreement']:8.2%}  {row['score']:7.4f}  {row['points']:+6.2f}  {row['in_float']:8}  "
        f"{'passed' if row['passed'] else 'failed'}"
    )


if __name__ == "__main__":
    main()
