"""Tokenized texts kept on disk: the same texts are tokenized once, whatever runs follow.

A file is named by the content it was made of (texts, tokenizer and its library, maximal length), so it is
never out of date. Anything may happen to the folder: what is missing or damaged is made again.
"""

import hashlib
import os
import time
import zipfile
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import astuple
from itertools import chain
from pathlib import Path

import numpy as np
import tokenizers

from encoder.cache_folder import cache_folder
from encoder.files import open_atomic
from encoder.rows import TokenizedRows, offsets_of
from encoder.tokenizer import EncodingStats, Tokenizer

# Texts with fewer letters than this are tokenized again: it takes no time that one would notice.
MIN_LETTERS = 500_000
# All files together; those that were not used for longest go first.
MAX_BYTES = 1 << 30
# What is half written for so long is never finished.
LEFT_BEHIND_S = 24 * 3600.0
VERSION = 1


def encode_cached(
    tokenizer: Tokenizer,
    texts: Sequence[str],
    pairs: Sequence[str] | None = None,
    *,
    max_length: int,
    on_rows: Callable[[int], None] | None = None,
) -> tuple[TokenizedRows, EncodingStats]:
    """``tokenizer.encode``, or what it made of the same texts before. Errors: those of ``encode``."""
    folder = cache_folder("tokens")
    if folder is None or sum(map(len, chain(texts, pairs or ()))) < MIN_LETTERS:
        return tokenizer.encode(texts, pairs, max_length=max_length, on_rows=on_rows)
    file = folder / f"{_key(tokenizer, texts, pairs, max_length)}.npz"
    found = _read(file)
    if found is None:
        found = tokenizer.encode(texts, pairs, max_length=max_length, on_rows=on_rows)
        _write(file, *found)
    elif on_rows is not None:
        on_rows(len(texts))
    return found


def _key(tokenizer: Tokenizer, texts: Sequence[str], pairs: Sequence[str] | None, max_length: int) -> str:
    library, unknown = tokenizers.__version__, tokenizer.unk_token_id  # counted in the statistics
    made_by = (VERSION, library, tokenizer.fingerprint, unknown, max_length, len(texts), pairs is None)
    digest = hashlib.sha256(repr(made_by).encode())
    for text in chain(texts, pairs or ()):
        content = text.encode("utf-8", "surrogatepass")
        digest.update(len(content).to_bytes(8, "little"))
        digest.update(content)
    return digest.hexdigest()


def _read(file: Path) -> tuple[TokenizedRows, EncodingStats] | None:
    try:
        with file.open("rb") as source, np.load(source, allow_pickle=False) as arrays:
            ids, types, lengths, stats = (arrays[f"arr_{number}"] for number in range(4))
    except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile, zlib.error):
        return None
    with suppress(OSError):  # a folder of somebody else's can be read all the same
        os.utime(file)
    return TokenizedRows(ids, types, offsets_of(lengths)), EncodingStats(*map(int, stats))


def _write(file: Path, rows: TokenizedRows, stats: EncodingStats) -> None:
    """Write the file if that is possible; a full disk or a folder of somebody else's is no reason to stop."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with open_atomic(file) as target:
            np.savez(target, rows.input_ids, rows.token_type_ids, rows.lengths, np.array(astuple(stats)))
        _make_room(file.parent)
    except OSError:
        pass


def _make_room(folder: Path) -> None:
    for partial in folder.glob(".*.partial"):  # of a process that was killed while it wrote
        if time.time() - partial.stat().st_mtime > LEFT_BEHIND_S:
            partial.unlink(missing_ok=True)
    total = 0
    for file in sorted(folder.glob("*.npz"), key=lambda file: -file.stat().st_mtime):
        total += file.stat().st_size
        if total > MAX_BYTES:
            file.unlink(missing_ok=True)
