"""A corpus: texts from files, folders and data sets, read a piece at a time, and laid into full rows."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from encoder.cells import read_text_cells
from encoder.columns import choose_columns
from encoder.errors import DataError, Problems
from encoder.reading import FORMATS, Table, decode
from encoder.rows import TokenizedRows, offsets_of
from encoder.sources import SPLIT_NAMES, check_place, read_source
from encoder.splits import content_key
from encoder.text_stream import stream_texts
from encoder.tokenizer import Tokenizer

# Texts read at a time.
PIECE = 1000
# A file in a folder of texts is a text, so fewer of them are read at a time.
PIECE_OF_FILES = 50
Pieces = Callable[[], Iterator[Sequence[str]]]


@dataclass(frozen=True)
class Part:
    """Some texts of a corpus, read anew by each call of ``pieces``.

    ``held_out``: all of them or none; ``None``: each by the hash of its content.
    """

    name: str
    pieces: Pieces
    held_out: bool | None = None


@dataclass
class Count:
    """What is in a part of a corpus."""

    texts: int = 0
    letters: int = 0


@dataclass(frozen=True)
class Corpus:
    """Texts to learn from and texts held out: of those without a split, about ``fraction`` by their hash.

    So the same text is on the same side in every corpus, and never on both.
    """

    parts: Sequence[Part]
    fraction: float
    notes: tuple[str, ...] = ()

    def texts(self, *, held_out: bool) -> Iterator[list[str]]:
        """The texts on one side, piece by piece; blank ones are left out."""
        for part in self.parts:
            if part.held_out in (None, held_out):
                for piece in part.pieces():
                    if kept := [text for text, is_out in self.sides(part, piece) if is_out == held_out]:
                        yield kept

    def sides(self, part: Part, piece: Sequence[str]) -> Iterator[tuple[str, bool]]:
        """The texts of ``piece``, one of ``part``, but for blank ones; and whether each is held out."""
        for text in piece:
            if text.strip():
                drawn = int(content_key(text)[:13], 16) / 16**13 < self.fraction
                yield text, drawn if part.held_out is None else part.held_out


@dataclass(frozen=True)
class Survey:
    """What one look at all of a corpus found. ``fingerprint``: SHA-256 over all texts and their sides."""

    train: Count
    held_out: Count
    fingerprint: str


def survey(corpus: Corpus) -> Survey:
    """Read all of ``corpus``; DataError where nothing is there to learn from, or nothing held out."""
    digest = hashlib.sha256()
    counts = {False: Count(), True: Count()}
    for part in corpus.parts:
        for text, held_out in chain.from_iterable(corpus.sides(part, piece) for piece in part.pieces()):
            content = text.encode("utf-8", "surrogatepass")
            digest.update(b"%d %d " % (held_out, len(content)))
            digest.update(content)
            counts[held_out].texts += 1
            counts[held_out].letters += len(text)
    total = counts[False].texts + counts[True].texts
    names = ", ".join(part.name for part in corpus.parts)
    if not total:
        raise DataError(f"{names}: no texts; all that is there is blank")
    for count, what in ((counts[False], "to learn from"), (counts[True], "held out")):
        if not count.texts:
            raise DataError(
                f"{names}: of {total} {'text' if total == 1 else 'texts'} none is {what} with "
                f"--validation-fraction {corpus.fraction:g}, by the hash of each; give more texts (a line of "
                "a .txt file is one, and so is a file in a folder), or another fraction"
            )
    return Survey(counts[False], counts[True], digest.hexdigest())


def read_corpus(
    sources: Sequence[str], *, text_column: str | None, encoding: str | None, fraction: float
) -> Corpus:
    """The corpus of ``sources``: files, folders and names of data sets.

    A text is a line of a .txt file, a cell of the text column of a table, or a whole .txt file in a folder of
    such, at any depth. Of a data set with splits, train is learnt from and validation held out.

    Raises:
        DataError: some of them cannot be read, with what is wrong of each.
    """
    problems, parts, notes = Problems(), list[Part](), list[str]()
    for source in sources:
        with problems.collected():
            parts += _read(source, text_column, encoding, notes)
    problems.tell()
    return Corpus(parts, fraction, tuple(notes))


def check_corpus(sources: Sequence[str]) -> None:
    """Refuse, before anything is read, what is neither here nor can be a name on the hub."""
    problems = Problems()
    for source in sources:
        with problems.collected():
            check_place(source)
    problems.tell()


def _read(source: str, text_column: str | None, encoding: str | None, notes: list[str]) -> list[Part]:
    path = Path(source).expanduser()
    if path.is_file():
        stream = stream_texts(path, text_column=text_column, encoding=encoding)
        notes += stream.notes
        return [Part(str(path), lambda: stream.pieces(PIECE, 0))]
    if path.is_dir() and not _is_data_set(path):
        return [_text_files(path, encoding)]
    read = read_source(source, encoding=encoding)
    notes += read.notes
    if "test" in read.tables:
        notes.append(f"{source}: the test rows are left alone.")
    return [
        _table_part(source, table, split, text_column, has_validation="validation" in read.tables)
        for split, table in read.tables.items()
        if split != "test"
    ]


def _is_data_set(folder: Path) -> bool:
    """Whether a folder has splits, as those that `enc finetune` reads."""
    if any((folder / name).exists() for name in ("dataset_dict.json", "state.json")):
        return True
    return any(
        path.stem.lower() in SPLIT_NAMES and path.suffix.lower() in FORMATS for path in folder.iterdir()
    )


def _text_files(folder: Path, encoding: str | None) -> Part:
    paths = sorted(path for path in folder.rglob("*.txt") if path.is_file())
    if not paths:
        raise DataError(
            f"{folder}: no .txt file in this folder or below, and no train or validation file "
            f"({', '.join(FORMATS)}); a single file of another kind is read when it is named itself"
        )

    def pieces() -> Iterator[Sequence[str]]:
        for start in range(0, len(paths), PIECE_OF_FILES):
            yield [_read_text(path, encoding) for path in paths[start : start + PIECE_OF_FILES]]

    return Part(str(folder), pieces)


def _read_text(path: Path, encoding: str | None) -> str:
    problems: list[str] = []
    try:
        text = decode(path.read_bytes(), name=str(path), encoding=encoding, problems=problems)
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error
    if text is None:
        raise DataError.from_problems(problems)
    return text


def _table_part(
    source: str, table: Table, split: str, text_column: str | None, *, has_validation: bool
) -> Part:
    columns = choose_columns(
        list(table.columns), where=table.name, text=text_column, need_label=False, pair=False
    )
    problems: list[str] = []
    texts = read_text_cells(table, columns.text, problems)
    if problems:
        raise DataError.from_problems(problems)
    held_out = split == "validation" if has_validation else None
    return Part(f"{source} ({split})", lambda: iter([texts]), held_out)


@dataclass(frozen=True)
class Packed:
    """Full rows made of texts, and what they are made of: tokens of text, and those without a piece."""

    rows: TokenizedRows
    tokens: int
    tokens_unknown: int


def pack_texts(
    texts: Iterator[list[str]],
    tokenizer: Tokenizer,
    max_length: int,
    on_texts: Callable[[int], None] | None = None,
) -> Packed:
    """All texts end to end, a separator after each, cut into rows of ``max_length`` tokens.

    A row is ``[CLS] … [SEP]`` (Liu et al. 2019, RoBERTa's FULL-SENTENCES), or without these where the
    tokenizer has none; the last one may be shorter. Nothing is lost and nothing padded.
    """
    first, last = tokenizer.token_id("cls_token"), tokenizer.token_id("sep_token")
    between = np.array([] if last is None else [last], dtype=np.int32)
    stream: list[NDArray[np.int32]] = []
    tokens = 0
    for piece in texts:
        ids, lengths = tokenizer.encode_text(piece)
        tokens += len(ids)
        ends = np.repeat(np.cumsum(lengths), len(between))
        stream.append(np.insert(ids, ends, np.tile(between, len(lengths))))
        if on_texts is not None:
            on_texts(len(piece))
    joined = np.concatenate([*stream, np.zeros(0, np.int32)])
    unknown = tokenizer.unk_token_id
    return Packed(
        rows=cut_into_rows(joined, max_length, first, last),
        tokens=tokens,
        tokens_unknown=0 if unknown is None else int(np.count_nonzero(joined == unknown)),
    )


def cut_into_rows(
    ids: NDArray[np.int32], max_length: int, first: int | None, last: int | None
) -> TokenizedRows:
    """``ids`` [n] in rows of at most ``max_length`` tokens, ``first`` and ``last`` around each."""
    room = max_length - (first is not None) - (last is not None)
    lengths = np.minimum(room, len(ids) - np.arange(0, len(ids), room))
    starts = offsets_of(lengths)[:-1]
    framed = ids
    if last is not None:
        framed = np.insert(framed, starts + lengths, last)
        starts, lengths = starts + np.arange(len(starts)), lengths + 1
    if first is not None:
        framed = np.insert(framed, starts, first)
        lengths = lengths + 1
    return TokenizedRows(
        framed.astype(np.int32), np.zeros(len(framed), dtype=np.int8), offsets_of(lengths.astype(np.int64))
    )
