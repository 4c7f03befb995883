"""`enc recipes`: the recipes that come with enc, listed, shown, copied to be changed."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from commands.options import FLAG

app = typer.Typer(
    help="List, show and copy the recipes that `enc run` can be given by name.",
    rich_markup_mode="rich",
    no_args_is_help=True,
    epilog="[bold]Examples[/bold]\n\nenc recipes list\n\nenc recipes show quickstart\n\n"
    "enc recipes copy quickstart mine.toml",
)
Name = Annotated[str, typer.Argument(metavar="NAME", help="One of `enc recipes list`.", show_default=False)]


@app.command("list")
def list_recipes() -> None:
    """List the recipes that come with enc."""
    from commands.tables import make_table, open_console
    from recipes.recipe_files import find_recipe, preset_names

    console = open_console()
    table = make_table("recipe", "what it does", "steps", texts=3)
    for name in preset_names():
        values = find_recipe(name).values
        steps = " → ".join(step["command"] for step in values["steps"])
        table.add_row(name, values["chain"]["description"], steps)
    table.columns[0].no_wrap = True
    console.print(table)


@app.command("show")
def show_recipe(name: Name) -> None:
    """Print a recipe as it is."""
    from recipes.recipe_files import find_recipe

    sys.stdout.write(find_recipe(name).text)


@app.command("copy")
def copy_recipe(
    name: Name,
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]", help="The file to write; otherwise NAME.toml here.", show_default=False
        ),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", metavar=FLAG, help="Replace the file if it exists.")
    ] = False,
) -> None:
    """Write a recipe to a file of your own, to change it and run that."""
    from recipes.recipe_files import copy_recipe as copy

    path = copy(name, file, overwrite=overwrite)
    sys.stdout.write(f"{path}\n")
