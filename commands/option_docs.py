"""The options of each command, as its page in docs/ lists them: made from what --help shows.

``python -m commands.option_docs docs`` writes them into the pages (`make docs`); a test tells which is stale.
"""

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import typer

BEGIN, END = "<!-- options: begin (make docs) -->", "<!-- options: end -->"


def commands() -> Mapping[str, Any]:
    """All commands by name; of a group, the group."""
    from commands.app import app

    group: Any = typer.main.get_command(app)
    found: dict[str, Any] = group.commands
    return found


def options_section(command: Any) -> str:
    """The part of a page between the markers, with them."""
    return "\n".join([BEGIN, "", *_sections(command), "", END])


def _sections(command: Any) -> Iterator[str]:
    if not hasattr(command, "commands"):
        yield "## All options"
        yield ""
        yield from _table(command)
        return
    yield "## All arguments and options"
    for name, inner in command.commands.items():
        if any(_is_shown(one) for one in inner.params):
            yield ""
            yield f"`{name}`:"
            yield ""
            yield from _table(inner)


def _table(command: Any) -> Iterator[str]:
    """A row for each option, under the name of its panel."""
    yield "| option | |"
    yield "| --- | --- |"
    panels: dict[str, list[Any]] = {}
    for one in filter(_is_shown, command.params):
        panels.setdefault(getattr(one, "rich_help_panel", None) or "", []).append(one)
    for panel, options in panels.items():
        if panel:
            yield f"| **{panel}** | |"
        for one in options:
            yield f"| `{_spell(one)}` | {_plain(one.help or '')} |"


def _is_shown(option: Any) -> bool:
    return option.name != "help" and not getattr(option, "hidden", False)


def _spell(option: Any) -> str:
    """``--layers N``, ``--latency / --no-latency``, ``MODEL``."""
    metavar = (option.metavar or "").strip().replace("|", "\\|")
    if option.param_type_name == "argument":
        return metavar
    names = " / ".join([*option.opts, *option.secondary_opts])
    return f"{names} {metavar}".strip()


def _plain(text: str) -> str:
    """Help without the markup that colours it, on one line."""
    from rich.text import Text

    plain = Text.from_markup(text).plain.replace("|", "\\|").replace("<", "&lt;")
    return re.sub(r"\s+", " ", plain).strip()


def with_section(page: str, section: str) -> str:
    """``page`` with the section in its place, or at its end."""
    if BEGIN not in page:
        return page.rstrip() + "\n\n" + section + "\n"
    before, _, rest = page.partition(BEGIN)
    return before + section + rest.partition(END)[2]


def main(folder: Path) -> None:
    """Bring the pages in ``folder`` up to date, and say which were not."""
    for name, command in commands().items():
        path = folder / f"{name}.md"
        page = path.read_text(encoding="utf-8")
        fresh = with_section(page, options_section(command))
        if fresh != page:
            path.write_text(fresh, encoding="utf-8")
            sys.stdout.write(f"{path}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
