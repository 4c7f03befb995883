"""`enc report`: what all runs of a folder say together, as a page to look at."""

import sys
from pathlib import Path
from typing import Any

from commands.options import AsJson, build_config, with_options
from recipes.report_config import ReportConfig

EPILOG = (
    "[bold]Examples[/bold]\n\nenc report runs\n\nenc report runs --output compression.html\n\n"
    "enc report runs --markdown > comment.md"
)


@with_options(ReportConfig)
def report(
    given: dict[str, Any],
    *,
    as_json: AsJson = False,
) -> None:
    """Write one page about all runs in a folder: charts, tables, and what may be claimed."""
    options = build_config(ReportConfig, given)

    from commands.progress import show_progress
    from encoder.files import write_atomic
    from recipes.report import report as run

    check_place(options)
    with show_progress() as progress:
        made = run(options, progress)
    if as_json:
        sys.stdout.write(made.to_json())
        return
    if options.markdown:
        from commands.report_markdown import render_markdown

        text = render_markdown(made)
        if options.output is None:
            sys.stdout.write(text)
            return
        write_atomic(options.output, text)
    else:
        from commands.report_page import render_report

        write_atomic(options.page, render_report(made))
    if made.headline is not None:
        sys.stdout.write(f"{made.headline.sentence}\n")
    sys.stdout.write(f"{options.output if options.markdown else options.page}\n")


def write_report(directory: Path, output: Path | None = None) -> Path:
    """Write the page about the runs below ``directory``, and return where it is: as `enc report` does.

    Raises:
        ConfigError: no runs there, or no file can be written.
    """
    from commands.report_page import render_report
    from encoder.files import write_atomic
    from recipes.report import report as run

    options = ReportConfig(folder=directory, output=output)
    check_place(options)
    write_atomic(options.page, render_report(run(options)))
    return options.page


def check_place(options: ReportConfig) -> None:
    """Refuse a file that cannot be written before anything is read.

    Raises:
        ConfigError: its folder is not there, or it is a folder itself.
    """
    from encoder.errors import ConfigError

    output = options.output
    if output is None:
        return
    if output.is_dir():
        raise ConfigError(f"--output {output}: a folder of that name exists; choose another name")
    if not output.absolute().parent.is_dir():
        raise ConfigError(f"--output {output}: {output.parent} is no folder; make it first")
