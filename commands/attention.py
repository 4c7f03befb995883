"""`enc attention`: where the heads of a model look in one text."""

import sys
from typing import Any

from commands.options import AsJson, build_config, with_options
from recipes.attention_config import AttentionConfig

EPILOG = (
    "[bold]Examples[/bold]\n\n"
    'enc attention runs/news "The striker scored twice."\n\n'
    'enc attention runs/news "The striker scored twice." --layer 3 --head 5\n\n'
    'enc attention runs/modern "The striker scored twice." --residual\n\n'
    'enc attention runs/pairs "How old are you?" --pair "What is your age?" --data pairs.csv'
)


@with_options(AttentionConfig)
def attention(
    given: dict[str, Any],
    *,
    as_json: AsJson = False,
) -> None:
    """Show where each head looks in a text, as a page, and what the answer owes to it."""
    options = build_config(AttentionConfig, given)

    from commands.attention_page import render_page
    from commands.attention_report import show_attention
    from commands.progress import show_progress
    from commands.residual_report import render_residual_page, show_residual
    from commands.tables import open_console
    from encoder.files import write_atomic
    from recipes.attention import attention as run

    with show_progress() as progress:
        seen = run(options, progress)
    residual = seen.result.residual
    if options.page is not None:
        page = render_page(seen) if residual is None else render_residual_page(seen.result, residual)
        write_atomic(options.page, page)
    if as_json:
        sys.stdout.write(seen.result.to_json())
        return
    if residual is not None:
        show_residual(seen.result, residual, open_console())
        return
    show_attention(seen, open_console(), layer=options.layer, head=options.head)
