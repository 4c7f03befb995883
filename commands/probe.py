"""`enc probe`: what each layer knows of the labels."""

import sys
from typing import Any

from commands.options import AsJson, build_config, with_options
from recipes.probe_config import ProbeConfig

EPILOG = (
    "[bold]Examples[/bold]\n\n"
    "enc probe minilm-l6 --data bbc-news\n\n"
    "enc probe runs/news --data bbc-news --pooling cls --output runs/news-probe"
)


@with_options(ProbeConfig)
def probe(
    given: dict[str, Any],
    *,
    as_json: AsJson = False,
) -> None:
    """Find out from which layer on what the labels ask for is there, beside two controls."""
    options = build_config(ProbeConfig, given)

    from commands.probe_report import show_probe
    from commands.progress import say_if_not_kept, show_progress
    from commands.tables import open_console
    from recipes.probe import probe as run

    with show_progress() as progress:
        result = run(options, progress)
    if as_json:
        sys.stdout.write(result.to_json())
        return
    show_probe(result, open_console())
    say_if_not_kept(result.output)
