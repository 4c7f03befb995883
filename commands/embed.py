"""`enc embed`: texts as vectors; and which layer and pooling make the best ones."""

import sys
from typing import Any

import typer

from commands.exit_codes import INTERRUPTED
from commands.options import AsJson, build_config, with_options
from recipes.embed_config import EmbedConfig

EPILOG = (
    "[bold]Examples[/bold]\n\n"
    "enc embed minilm-l6 --input texts.txt --output vectors.npy\n\n"
    "enc embed models/e5 --prefix 'passage: ' --input docs.parquet --output index.parquet --resume\n\n"
    "enc embed models/e5 --prefix 'query: ' --compare similar.csv"
)


@with_options(EmbedConfig)
def embed(
    given: dict[str, Any],
    *,
    as_json: AsJson = False,
) -> None:
    """Turn texts into vectors, for search and indexing; or find the layer and pooling to take."""
    options = build_config(EmbedConfig, given)

    from commands.embed_report import show_comparison, show_embedding
    from commands.progress import show_progress
    from commands.tables import open_console

    if options.compare is not None:
        from recipes.embed_comparison import compare_choices

        with show_progress() as progress:
            compared = compare_choices(options, progress)
        if as_json:
            sys.stdout.write(compared.to_json())
        else:
            show_comparison(compared, open_console())
        return

    from encoder.files import UNFINISHED_SUFFIX
    from recipes.embed import embed as run

    try:
        with show_progress() as progress:
            result = run(options, progress)
    except KeyboardInterrupt:
        assert options.output is not None
        work = options.output.with_name(options.output.name + UNFINISHED_SUFFIX)
        if not work.exists():
            raise
        sys.stderr.write(f"\nInterrupted; {work} keeps what was done. Add --resume to continue.\n")
        raise typer.Exit(INTERRUPTED) from None
    if as_json:
        sys.stdout.write(result.to_json())
    else:
        show_embedding(result, open_console())
