"""Text to token ids: special tokens, pairs and truncation as the model's folder says, and what was cut."""

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers
from numpy.typing import NDArray

from encoder.encoding import Chunk, encode_chunk, kept_tokens, unicode_problem
from encoder.errors import CheckpointError, ConfigError, DataError
from encoder.files import write_atomic
from encoder.rows import TokenizedRows
from encoder.tokenizer_files import CONFIG_FILE, TOKENIZER_FILE
from encoder.tokenizer_folder import TokenizerFolder, read_tokenizer_folder

# Texts tokenized at a time: enough to keep every core busy, few enough to bound the memory.
CHUNK_ROWS = 1000
# How a token is spelt that is nothing but a space.
BLANK = "␣"
SPACE_MARKS = "▁Ġ"  # of SentencePiece and of byte-level BPE
# Families whose positions are counted from the pad id, so that a wrong one shifts every position.
FAMILIES_WITH_POSITIONS_AFTER_PAD = ("roberta", "xlm-roberta", "camembert")


@dataclass(frozen=True)
class EncodingStats:
    """What encoding did to R rows.

    ``tokens`` counts what is kept, special tokens included; ``tokens_lost`` what truncation removed from the
    ``rows_cut`` rows; ``tokens_unknown`` the kept tokens that stand for text outside the vocabulary.
    """

    rows: int
    rows_cut: int
    tokens: int
    tokens_lost: int
    tokens_unknown: int


def limit_threads(threads: int) -> None:
    """Let texts be tokenized by so many ``threads``, unless the user's ``RAYON_NUM_THREADS`` says otherwise.

    The tokenizers library reads this once in a process, when its first texts come.
    """
    os.environ.setdefault("RAYON_NUM_THREADS", str(threads))


@dataclass(frozen=True)
class Piece:
    """A token as a reader knows it: what stands in the text, or a special token's own name.

    ``sequence`` is the text it is of, 0 or 1; ``None`` for a special token.
    """

    text: str
    sequence: int | None


def load_tokenizer(folder: Path, *, max_tokens: int, pad_token_id: int) -> "Tokenizer":
    """The tokenizer of a model folder, for a model with ``max_tokens`` positions and that pad id.

    Raises ``CheckpointError`` when the folder has no tokenizer that enc can read, or when its pad id is not
    the model's and the model counts its positions from it (the RoBERTa families).
    """
    read = read_tokenizer_folder(folder)
    tokenizer = Tokenizer(read, max_tokens=max_tokens)
    found = tokenizer.pad_token_id
    if found is not None and found != pad_token_id and read.family in FAMILIES_WITH_POSITIONS_AFTER_PAD:
        raise CheckpointError(
            f"{folder}: the tokenizer pads with {read.special_tokens['pad_token']!r} (id {found}), but "
            f"config.json says pad_token_id {pad_token_id}, from which a {read.family} model counts its "
            "positions. Use the tokenizer that the model was trained with, or correct config.json."
        )
    return tokenizer


class Tokenizer:
    """Turns texts and pairs of texts into ``TokenizedRows``; made by ``load_tokenizer``."""

    def __init__(self, folder: TokenizerFolder, *, max_tokens: int) -> None:
        self._backend: tokenizers.Tokenizer = folder.backend
        self._folder = folder
        self._max_tokens = max_tokens

    @property
    def max_length(self) -> int:
        """The longest row in tokens: what the model has positions for, or less where the folder says less."""
        return min(self._max_tokens, self._folder.model_max_length or self._max_tokens)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for the user about choices made where the folder's files disagree."""
        return self._folder.notes

    @property
    def truncation_side(self) -> str:
        """From which end of a text tokens are cut: left or right."""
        return self._folder.truncation_side

    @property
    def uses_token_types(self) -> bool:
        """Whether the second text of a pair has tokens of type 1; otherwise all types are 0."""
        return self._folder.uses_token_types

    @cached_property
    def vocab_size(self) -> int:
        """One more than the largest id that can come out; the model's table needs as many rows."""
        return max(self._backend.get_vocab(with_added_tokens=True).values()) + 1

    @property
    def pad_token_id(self) -> int | None:
        """The id that fills rows up where another library pads; ``None``: there is none."""
        return self.token_id("pad_token")

    @property
    def unk_token_id(self) -> int | None:
        """The id of what has no piece in the vocabulary; ``None``: everything has one."""
        return self.token_id("unk_token")

    def token_id(self, name: str) -> int | None:
        """The id of a special token by its Hugging Face name (``cls_token``…); ``None``: there is none."""
        token = self._folder.special_tokens.get(name)
        return None if token is None else self._backend.token_to_id(token)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of all that decides the ids of a text: equal fingerprints, equal rows."""
        digest = hashlib.sha256(self._backend.to_str().encode())
        settings = (self.truncation_side, self.uses_token_types, self._backend.encode_special_tokens)
        digest.update(repr(settings).encode())
        return digest.hexdigest()

    @property
    def definition(self) -> dict[str, Any]:
        """What tokenizer.json holds."""
        definition: dict[str, Any] = json.loads(self._backend.to_str())
        return definition

    def with_definition(self, definition: Mapping[str, Any]) -> "Tokenizer":
        """The tokenizer with another tokenizer.json and the same settings beside it."""
        backend = tokenizers.Tokenizer.from_str(json.dumps(definition))
        backend.encode_special_tokens = self._backend.encode_special_tokens
        return Tokenizer(replace(self._folder, backend=backend), max_tokens=self._max_tokens)

    def encode(
        self,
        texts: Sequence[str],
        pairs: Sequence[str] | None = None,
        *,
        max_length: int | None = None,
        on_rows: Callable[[int], None] | None = None,
    ) -> tuple[TokenizedRows, EncodingStats]:
        """Tokenize R texts, or R pairs, into rows of at most ``max_length`` tokens.

        The default is ``self.max_length``. A row that is too long loses tokens of its text, in a pair of the
        longer text first; the special tokens stay. An empty text is a row of special tokens. The rows have no
        labels. ``on_rows`` is told how many rows each chunk added.

        Raises ``ConfigError`` for a ``max_length`` that the model has no positions for or that leaves no room
        for text, ``DataError`` for text that is not valid Unicode.
        """
        if pairs is not None and len(pairs) != len(texts):
            raise ValueError(f"{len(texts)} texts but {len(pairs)} pairs")
        limit = self._check_max_length(max_length, pair=pairs is not None)
        chunks = [Chunk.empty()]
        for start in range(0, len(texts), CHUNK_ROWS):
            inputs: list[Any] = list(texts[start : start + CHUNK_ROWS])
            if pairs is not None:
                inputs = list(zip(inputs, pairs[start : start + CHUNK_ROWS], strict=True))
            chunks.append(encode_chunk(self._folder, inputs, limit, start))
            if on_rows is not None:
                on_rows(len(inputs))

        input_ids = np.concatenate([chunk.input_ids for chunk in chunks])
        lengths = np.concatenate([chunk.lengths for chunk in chunks])
        rows = TokenizedRows(
            input_ids=input_ids,
            token_type_ids=np.concatenate([chunk.token_type_ids for chunk in chunks]),
            offsets=np.concatenate([[0], lengths.cumsum()]).astype(np.int64),
        )
        unk = self.unk_token_id
        stats = EncodingStats(
            rows=len(rows),
            rows_cut=sum(chunk.rows_cut for chunk in chunks),
            tokens=len(input_ids),
            tokens_lost=sum(chunk.tokens_lost for chunk in chunks),
            tokens_unknown=0 if unk is None else int(np.count_nonzero(input_ids == unk)),
        )
        return rows, stats

    def encode_text(self, texts: Sequence[str]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """The tokens of texts end to end, without special tokens and uncut, int32 [N]; and those of each.

        Raises ``DataError`` for text that is not valid Unicode.
        """
        try:
            encodings = self._backend.encode_batch_fast(list(texts), add_special_tokens=False)
        except (UnicodeEncodeError, TypeError) as error:
            for text in texts:
                if problem := unicode_problem(text):
                    raise DataError(problem) from error
            raise
        lengths = np.array([len(encoding) for encoding in encodings], dtype=np.int64)
        ids = chain.from_iterable(encoding.ids for encoding in encodings)
        return np.fromiter(ids, np.int32, int(lengths.sum())), lengths

    @cached_property
    def special_ids(self) -> tuple[int, ...]:
        """The ids of all special tokens, the unknown one among them."""
        ids = (self._backend.token_to_id(token) for token in self._folder.special_tokens.values())
        return tuple(sorted({index for index in ids if index is not None}))

    def spell(self, text: str, pair: str | None = None, *, max_length: int | None = None) -> list["Piece"]:
        """The tokens of the row that ``encode`` makes of ``text``, as a reader knows them: T pieces.

        Errors as in ``encode``.
        """
        limit = self._check_max_length(max_length, pair=pair is not None)
        encoding = self._backend.encode(text, pair)
        kept = np.ones(len(encoding), dtype=bool)
        if len(encoding) > limit:
            kept = kept_tokens(encoding, limit, self.truncation_side)
        parts = (text, pair or "")
        pieces = []
        for place in np.flatnonzero(kept):
            sequence, token = encoding.sequence_ids[place], encoding.tokens[place]
            start, stop = encoding.offsets[place]
            written = token if sequence is None else parts[sequence][start:stop].strip()
            if not token.strip(SPACE_MARKS):  # its place is that of the letter after it
                written = ""
            pieces.append(Piece(written or BLANK, sequence))
        return pieces

    def _check_max_length(self, max_length: int | None, *, pair: bool) -> int:
        """The limit to encode with."""
        limit = self.max_length if max_length is None else max_length
        if limit > self.max_length:
            reason = (
                f"the model has positions for {self._max_tokens} tokens"
                if self.max_length == self._max_tokens
                else f"model_max_length in its {CONFIG_FILE} is {self.max_length}"
            )
            raise ConfigError(f"max length {limit} is too long: {reason}; use {self.max_length} or less")
        special = self._backend.num_special_tokens_to_add(is_pair=pair)
        least = special + (2 if pair else 1)
        if limit < least:
            raise ConfigError(
                f"max length {limit} is too short: a {'pair' if pair else 'text'} takes {special} special "
                f"tokens, so use {least} or more"
            )
        return limit

    def save(self, folder: Path) -> None:
        """Write ``tokenizer.json`` and ``tokenizer_config.json``, which Transformers' AutoTokenizer opens.

        Saving the same tokenizer again writes the same bytes.
        """
        inputs = [
            "input_ids",
            *(["token_type_ids"] if self._folder.uses_token_types else []),
            "attention_mask",
        ]
        settings = dict(self._folder.settings) | {
            # The class that takes tokenizer.json as it is; others rebuild parts of it from their defaults.
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_input_names": inputs,
            "model_max_length": self.max_length,
        }
        config = json.dumps(settings, indent=2, ensure_ascii=False, sort_keys=True)
        folder.mkdir(parents=True, exist_ok=True)
        write_atomic(folder / TOKENIZER_FILE, self._backend.to_str(pretty=True))
        write_atomic(folder / CONFIG_FILE, config + "\n")
