"""`enc bench`: measure models and compare them."""

import sys
from typing import Any

from commands.options import AsJson, build_config, with_options
from recipes.bench_config import BenchConfig

EPILOG = (
    "[bold]Examples[/bold]\n\n"
    "enc bench runs/news\n\n"
    "enc bench runs/news runs/news-pruned --data bbc-news --output runs/bench-pruned\n\n"
    "enc bench runs/news --batch-sizes 1,32 --sequence-lengths 16,128 --runtimes torch-fp32,onnx-int8"
)


@with_options(BenchConfig)
def bench(
    given: dict[str, Any],
    *,
    as_json: AsJson = False,
) -> None:
    """Measure how fast and how big models are, and compare them."""
    options = build_config(BenchConfig, given)

    from commands.bench_report import show_bench
    from commands.progress import say_if_not_kept, show_progress
    from commands.tables import open_console
    from recipes.bench import bench as run

    with show_progress() as progress:
        result = run(options, progress)
    if as_json:
        sys.stdout.write(result.to_json())
        return
    show_bench(result, open_console())
    say_if_not_kept(result.output)
