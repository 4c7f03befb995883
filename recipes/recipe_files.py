"""Recipes as files: those that come with enc, in ``recipes/presets``, and a user's own."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from encoder.errors import ConfigError, did_you_mean
from encoder.files import write_atomic

PRESETS = Path(__file__).with_name("presets")
SUFFIX = ".toml"


@dataclass(frozen=True)
class RecipeFile:
    """A recipe as it was found: the file's ``text``, and the ``values`` in it."""

    name: str
    path: Path
    text: str
    values: dict[str, Any]

    @property
    def opening(self) -> str:
        """The comment that the file opens with, without its signs."""
        lines = []
        for line in self.text.splitlines():
            if not line.startswith("#"):
                break
            lines.append(line.removeprefix("#").strip())
        return "\n".join(lines)


def preset_names() -> list[str]:
    """The recipes that come with enc."""
    return sorted(path.stem for path in PRESETS.glob(f"*{SUFFIX}"))


def find_recipe(source: str) -> RecipeFile:
    """The recipe called ``source``: a file, or the name of one that comes with enc.

    Raises:
        ConfigError: there is none, or it is no TOML.
    """
    path = Path(source).expanduser()
    if source in preset_names() and not path.is_file():
        path = PRESETS / f"{source}{SUFFIX}"
    elif path.suffix != SUFFIX and not path.is_file():
        names = preset_names()
        raise ConfigError(
            f"{source}: no such recipe{did_you_mean(source, names)}; enc has {', '.join(names)}, and one of "
            f"your own is a file that ends in {SUFFIX}"
        )
    try:
        text = path.read_text(encoding="utf-8-sig")
        return RecipeFile(path.stem, path, text, tomllib.loads(text))
    except OSError as error:
        raise ConfigError(f"{source}: cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{source}: not a TOML file: {error}") from error


def copy_recipe(source: str, target: Path | None, *, overwrite: bool = False) -> Path:
    """Write the recipe called ``source`` to the file ``target``, otherwise here under its own name.

    Raises:
        ConfigError: there is no such recipe, or the file is there already.
    """
    found = find_recipe(source)
    path = target or Path(found.path.name)
    if path.is_dir():
        path = path / found.path.name
    if path.exists() and not overwrite:
        raise ConfigError(f"{path}: the file exists; choose another name, or --overwrite to replace it")
    try:
        write_atomic(path, found.text)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror}") from error
    return path
