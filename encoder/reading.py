"""Files → tables: CSV, TSV, JSON lines, Parquet and ``datasets`` objects, with the place of each row kept.

CSV is parsed here and not by pandas (which ``datasets`` uses): "NA", "null" and "nan" stay text, a blank cell
changes no other cell's type, and a fault is found with its line and column.
"""

import codecs
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from encoder.delimited import parse_delimited
from encoder.errors import ConfigError, did_you_mean
from encoder.wording import counted

FORMATS = (".csv", ".tsv", ".jsonl", ".parquet")
# Examples for an error; every text encoding that Python knows can be given.
ENCODINGS = ("utf-8", "utf-16", "latin-1", "cp1252", "cp949", "euc-kr", "shift_jis", "gb18030", "big5")


@dataclass(frozen=True)
class Table:
    """One file or split as read: cells by column, and where each row stands.

    Cells of CSV and TSV are ``str``; those of the other formats are what the file holds, ``None`` and NaN
    being "missing". ``places[r]`` is the line (or the file) that row ``r`` begins at; without it rows are
    counted from 1. ``class_names`` holds the names behind the integers of a ``ClassLabel`` column.
    """

    name: str
    columns: Mapping[str, Sequence[Any]]
    places: Sequence[int | str] | None = None
    class_names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def where(self, row: int) -> str:
        """``reviews.csv:17``, or ``reviews.parquet: row 16`` for a format without lines."""
        if self.places is None:
            return f"{self.name}: row {row + 1}"
        return f"{self.name}:{self.places[row]}"


def read_file(path: Path, *, encoding: str | None, problems: list[str]) -> Table | None:
    """The table in ``path``, by its suffix; ``None`` when it cannot be read, with the faults in ``problems``.

    Raises ``ConfigError`` when ``encoding`` is not the name of one.
    """
    suffix = path.suffix.lower()
    if suffix not in FORMATS:
        problems.append(
            f"{path}: the format {path.suffix or 'without suffix'!r} is not one of {', '.join(FORMATS)}"
        )
        return None
    try:
        if path.stat().st_size == 0:
            problems.append(f"{path}: the file is empty")
            return None
        if suffix == ".parquet":
            return _read_parquet(path, problems)
        content = path.read_bytes()
    except OSError as error:
        problems.append(f"{path}: cannot be read: {error.strerror or error}")
        return None
    text = decode(content, name=str(path), encoding=encoding, problems=problems)
    if text is None:
        return None
    if not text.strip():
        problems.append(f"{path}: the file is empty")
        return None
    if suffix == ".jsonl":
        return _parse_json_lines(text, str(path), problems)
    parsed = parse_delimited(
        text, name=str(path), delimiter="\t" if suffix == ".tsv" else ",", problems=problems
    )
    if parsed is None:
        return None
    return Table(str(path), parsed.columns, parsed.lines, notes=parsed.notes)


def decode(content: bytes, *, name: str, encoding: str | None, problems: list[str]) -> str | None:
    """``content`` as text: UTF-8 with or without a byte order mark, or ``encoding``.

    Bytes that do not fit are a problem that names the line and the encoding the file is probably in.
    """
    if encoding is not None:
        try:
            b"a".decode(encoding)
        except UnicodeError:
            pass  # an encoding of wider units
        except LookupError:
            raise ConfigError(
                f"--encoding: {encoding!r} is not the name of an encoding, such as {', '.join(ENCODINGS)}"
                + did_you_mean(encoding, ENCODINGS)
            ) from None
    elif content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        problems.append(f"{name}:1:1: not UTF-8 but UTF-16 (its byte order mark); --encoding utf-16 reads it")
        return None
    try:
        text = content.decode(encoding or "utf-8")
    except UnicodeDecodeError as error:
        before = content[: error.start]
        line = before.count(b"\n") + 1
        column = error.start - (before.rfind(b"\n") + 1) + 1
        found = f"byte 0x{content[error.start]:02x} at offset {error.start}"
        guess = _guess_encoding(content)
        todo = (
            f"it looks like {guess}: --encoding {guess} reads it" if guess != encoding else "see --encoding"
        )
        if b"\0" in content and "16" not in guess:
            todo = "there are NUL bytes in it too: this looks like no text file, but one of another format"
        problems.append(f"{name}:{line}:{column}: not {encoding or 'UTF-8'}: {found}; {todo}")
        return None
    text = text.removeprefix("\ufeff")
    nul = text.find("\0")
    if nul >= 0:
        line, column = _line_and_column(text, nul)
        problems.append(
            f"{name}:{line}:{column}: a NUL character ({text.count(chr(0))} in all): the file is damaged, "
            "or in another encoding (--encoding utf-16-le?)"
        )
        return None
    return text


def is_missing(cell: object) -> bool:
    """Whether a cell holds nothing: ``None`` or NaN. The words "NA" and "null" are text."""
    return cell is None or (isinstance(cell, float) and math.isnan(cell))


def table_from_dataset(dataset: Any, name: str) -> Table:
    """A ``datasets.Dataset`` as a table; columns of images, audio and the like are left out."""
    import datasets

    usable, class_names = [], {}
    for column, feature in dataset.features.items():
        inner = feature
        while isinstance(inner, list) or hasattr(inner, "feature"):
            inner = inner[0] if isinstance(inner, list) else inner.feature
        if isinstance(inner, datasets.ClassLabel):
            class_names[column] = tuple(inner.names)
        if isinstance(inner, (datasets.ClassLabel, datasets.Value)):
            usable.append(column)
    columns = dataset.select_columns(usable).with_format(None)[:] if usable else {}
    return Table(name, columns, class_names=class_names)


def _read_parquet(path: Path, problems: list[str]) -> Table | None:
    import pyarrow
    import pyarrow.parquet

    try:
        arrow = pyarrow.parquet.read_table(path)
    except pyarrow.ArrowException as error:
        problems.append(f"{path}: not a Parquet file that can be read: {str(error).splitlines()[0]}")
        return None
    if not len(arrow):
        problems.append(f"{path}: the file has no rows")
        return None
    names = arrow.column_names
    if len(set(names)) < len(names):
        problems.append(f"{path}: column names repeat: {', '.join(names)}")
        return None
    class_names: dict[str, tuple[str, ...]] = {}
    if b"huggingface" in (arrow.schema.metadata or {}):
        import datasets

        features = datasets.Features.from_arrow_schema(arrow.schema)
        for name, feature in features.items():
            inner = getattr(feature, "feature", feature)
            if isinstance(inner, datasets.ClassLabel):
                class_names[name] = tuple(inner.names)
    return Table(str(path), {name: arrow[name].to_pylist() for name in names}, class_names=class_names)


def _parse_json_lines(text: str, name: str, problems: list[str]) -> Table | None:
    found: list[str] = []
    # Not splitlines(): a JSON string may hold U+2028 and the like, which are no line ends here.
    numbered = list(read_json_lines(text.split("\n"), name=name, problems=found))
    problems.extend(found)
    if found or not numbered:
        if not found:
            problems.append(f"{name}: the file has no rows")
        return None
    rows = [row for _, row in numbered]
    columns = {key: [row.get(key) for row in rows] for key in _keys(rows)}
    blank = text.count("\n") + (not text.endswith("\n")) - len(rows)
    notes = (f"{name}: {counted(blank, 'blank line')} skipped",) if blank else ()
    return Table(name, columns, [number for number, _ in numbered], notes=notes)


def read_json_lines(
    lines: Iterable[str], *, name: str, problems: list[str], first: int = 1
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects in ``lines``, whose numbers begin with ``first``, each with its number; no blank lines.

    What is no object goes into ``problems`` instead, with its line.
    """
    for number, line in enumerate(lines, start=first):
        if not line.strip():
            continue
        try:
            row = json.loads(line, object_pairs_hook=_unique_keys)
        except json.JSONDecodeError as error:
            problems.append(f"{name}:{number}:{error.colno}: not valid JSON: {error.msg}")
            continue
        except (RecursionError, ValueError) as error:
            problems.append(f"{name}:{number}: not valid JSON: {error}")
            continue
        if not isinstance(row, dict):
            problems.append(
                f'{name}:{number}: expected an object like {{"text": …, "label": …}}, found {_kind(row)}'
            )
            continue
        yield number, row


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"the key {next(key for key in keys if keys.count(key) > 1)!r} occurs twice")
    return row


def _keys(rows: Iterable[dict[str, Any]]) -> list[str]:
    keys: dict[str, None] = {}
    for row in rows:
        keys.update(dict.fromkeys(row))
    return list(keys)


def _kind(value: object) -> str:
    names = {list: "a list", str: "a string", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


def _line_and_column(text: str, position: int) -> tuple[int, int]:
    before = text[:position]
    return before.count("\n") + 1, position - (before.rfind("\n") + 1) + 1


# East Asian encodings, each with the first bytes of its common letters and their least second byte.
_EAST_ASIAN = (
    ("cp949", bytes(range(0xB0, 0xC9)), 0xA1),
    ("cp932", bytes([*range(0x81, 0x84), *range(0x88, 0x98)]), 0x40),
    ("gb18030", bytes([*range(0xA1, 0xA4), *range(0xB0, 0xD8)]), 0xA1),
)


def _guess_encoding(content: bytes) -> str:
    sparse = content[:4096].count(0) > len(content[:4096]) // 4
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or sparse:
        return "utf-16"
    shares = {}
    for encoding, leads, least in _EAST_ASIAN:
        try:
            letters = [letter.encode(encoding) for letter in content.decode(encoding) if letter > "\x7f"]
        except UnicodeDecodeError:
            continue
        common = sum(len(letter) == 2 and letter[0] in leads and letter[1] >= least for letter in letters)
        shares[encoding] = common / len(letters)
    best = max(shares, key=lambda encoding: shares[encoding], default="")
    if best and shares[best] > 0.6:
        return best
    try:
        content.decode("cp1252")
    except UnicodeDecodeError:
        return "latin-1"
    return "cp1252"
