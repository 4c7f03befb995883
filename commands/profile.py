"""`enc profile`: where a model's time goes."""

import sys
from typing import Any

from commands.options import AsJson, build_config, with_options
from recipes.profile_config import ProfileConfig

EPILOG = (
    "[bold]Examples[/bold]\n\n"
    "enc profile runs/news\n\n"
    "enc profile runs/news --data bbc-news --sequence-lengths 64,256"
)


@with_options(ProfileConfig)
def profile(
    given: dict[str, Any],
    *,
    as_json: AsJson = False,
) -> None:
    """Show where a model's time goes, and so whether heads or neurons are worth pruning."""
    options = build_config(ProfileConfig, given)

    from commands.profile_report import show_profile
    from commands.progress import say_if_not_kept, show_progress
    from commands.tables import open_console
    from recipes.profile import profile as run

    with show_progress() as progress:
        result = run(options, progress)
    if as_json:
        sys.stdout.write(result.to_json())
        return
    show_profile(result, open_console())
    say_if_not_kept(result.output)
