"""`enc evaluate`: score a fine-tuned model on labelled texts."""

import sys
from typing import Any

from commands.options import AsJson, build_config, with_options
from recipes.evaluate_config import EvaluateConfig

EPILOG = (
    "[bold]Examples[/bold]\n\n"
    "enc evaluate runs/news --data bbc-news\n\n"
    "enc evaluate runs/reviews --data more-reviews.csv --json"
)


@with_options(EvaluateConfig)
def evaluate(
    given: dict[str, Any],
    *,
    as_json: AsJson = False,
) -> None:
    """Score a fine-tuned model on labelled texts. Labels are matched by name."""
    options = build_config(EvaluateConfig, given)

    from commands.progress import say_if_not_kept, show_progress
    from commands.result_tables import show_result
    from commands.tables import open_console
    from recipes.evaluate import evaluate as run

    with show_progress() as progress:
        result = run(options, progress)
    if as_json:
        sys.stdout.write(result.to_json())
        return
    show_result(result, open_console())
    say_if_not_kept(result.output)
