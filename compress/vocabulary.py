"""A vocabulary cut down to what some texts use: a smaller word table and a smaller tokenizer.

Kept are the pieces that the texts are made of, all pieces of one character, so that any other text still has
pieces, and the special tokens. Those texts are tokenized as before, which is checked; other texts may fall
into more and shorter pieces.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from encoder.errors import CompressionError
from encoder.model import Classifier
from encoder.rows import TokenizedRows
from encoder.tokenizer import Tokenizer

KINDS = ("BPE", "Unigram", "WordPiece")


def prune_vocabulary(
    model: Classifier, tokenizer: Tokenizer, texts: Sequence[str], pairs: Sequence[str] | None = None
) -> tuple[Classifier, Tokenizer]:
    """``model`` and ``tokenizer`` with only the pieces that ``texts`` (and ``pairs``) need.

    The new ids are in the order of the old ones. On these texts the logits are the same.

    Raises:
        CompressionError: the tokenizer is of a kind that cannot be cut down.
    """
    rows, _ = tokenizer.encode(texts, pairs)
    everything = [*texts, *(pairs or ())]
    pieces = _Pieces(tokenizer.definition)
    kept = pieces.always_kept() | set(np.unique(rows.input_ids).tolist())
    if model.config.position_offset:
        # Positions are counted from the padding's id when the model is loaded, so that id has to stay.
        kept |= set(range(model.config.pad_token_id + 1))
    while True:
        kept = pieces.closed(kept)
        order = np.array(sorted(kept), dtype=np.int64)
        smaller = tokenizer.with_definition(pieces.restricted(order))
        found, _ = smaller.encode(texts, pairs)
        different = [everything[row] for row in _differing(rows, found, order, len(texts), everything)]
        if not different:
            return _with_word_rows(model, order), smaller
        more = pieces.inside_of(different) - kept
        if not more:
            raise CompressionError(
                f"the vocabulary cannot be cut down: the smaller one tokenizes {different[0]!r} otherwise"
            )
        kept |= more


def _differing(
    rows: TokenizedRows, found: TokenizedRows, order: NDArray[np.int64], texts: int, everything: Sequence[str]
) -> list[int]:
    """Which of ``everything`` (texts, then pairs) are in rows that came out otherwise."""
    if np.array_equal(rows.offsets, found.offsets) and np.array_equal(rows.input_ids, order[found.input_ids]):
        return []
    different = []
    for row in range(len(rows)):
        before = rows.input_ids[rows.offsets[row] : rows.offsets[row + 1]]
        after = found.input_ids[found.offsets[row] : found.offsets[row + 1]]
        if not np.array_equal(before, order[after]):
            different.append(row)
    return [index for index in range(len(everything)) if index % texts in set(different)]


def _with_word_rows(model: Classifier, order: NDArray[np.int64]) -> Classifier:
    """``model`` with the rows ``order`` of its word table."""
    config = model.config
    place = np.searchsorted(order, config.pad_token_id)
    has_pad = place < len(order) and order[place] == config.pad_token_id
    smaller = Classifier(
        config.model_copy(update={"vocab_size": len(order), "pad_token_id": int(place) if has_pad else 0}),
        model.task,
    )
    state = dict(model.state_dict())
    name = "encoder.embeddings.word.weight"
    state[name] = state[name][torch.from_numpy(order)]
    smaller.load_state_dict(state)
    return smaller.train(model.training)


class _Pieces:
    """The vocabulary in a tokenizer.json, of one of ``KINDS``."""

    def __init__(self, definition: dict[str, Any]) -> None:
        self._definition = definition
        self._model: dict[str, Any] = definition["model"]
        self._kind = self._model.get("type", "")
        if self._kind not in KINDS:
            raise CompressionError(
                f"a tokenizer of the kind {self._kind or 'unknown'} cannot be cut down; "
                f"expected one of {', '.join(KINDS)}"
            )
        if self._kind == "BPE" and (
            self._model.get("continuing_subword_prefix") or self._model.get("end_of_word_suffix")
        ):
            raise CompressionError(
                "a BPE tokenizer that marks the insides or ends of words (continuing_subword_prefix, "
                "end_of_word_suffix) cannot be cut down; only those that do not, as RoBERTa's"
            )
        vocabulary = self._model["vocab"]
        if self._kind == "Unigram":
            self._ids = {piece: index for index, (piece, _) in enumerate(vocabulary)}
        else:
            self._ids = dict(vocabulary)
        self._added = {token["content"]: token["id"] for token in definition.get("added_tokens", [])}
        self._prefix = self._model.get("continuing_subword_prefix") or ""
        merges = self._model.get("merges", [])
        self._merges = [
            tuple(merge.split(" ")) if isinstance(merge, str) else tuple(merge) for merge in merges
        ]
        self._ranks = {merge: rank for rank, merge in enumerate(self._merges)}

    def always_kept(self) -> set[int]:
        """Special and other added tokens, the unknown token, and pieces of one character or one byte."""
        kept = set(self._added.values())
        for piece, index in self._ids.items():
            inner = piece.removeprefix(self._prefix) if self._prefix else piece
            if len(inner) <= 1 or (inner.startswith("<0x") and inner.endswith(">")):
                kept.add(index)
        if self._kind == "Unigram":
            if self._model.get("unk_id") is not None:
                kept.add(self._model["unk_id"])
            # What an unknown character costs is counted from the least likely piece.
            kept.add(min(range(len(self._model["vocab"])), key=lambda index: self._model["vocab"][index][1]))
        elif self._model.get("unk_token") in self._ids:
            kept.add(self._ids[self._model["unk_token"]])
        return kept

    def closed(self, kept: set[int]) -> set[int]:
        """``kept`` with the pieces that merging makes on the way to them (BPE)."""
        if self._kind != "BPE":
            return kept
        closed = set(kept)
        for piece, index in self._ids.items():
            if index in kept:
                closed.update(self._ids[part] for part in self._on_the_way(piece) if part in self._ids)
        return closed

    def _on_the_way(self, piece: str) -> Iterable[str]:
        """All pieces that exist while the characters of ``piece`` are merged, the first rank first."""
        parts = list(piece)
        yield from parts
        while len(parts) > 1:
            ranks = [self._ranks.get(pair, len(self._ranks)) for pair in pairwise(parts)]
            best = min(range(len(ranks)), key=ranks.__getitem__)
            if ranks[best] == len(self._ranks):
                return
            parts[best : best + 2] = [parts[best] + parts[best + 1]]
            yield parts[best]

    def inside_of(self, texts: Iterable[str]) -> set[int]:
        """All pieces that are spelt somewhere in ``texts``, as far as normalizing leaves them as they are."""
        folded = [text.casefold() for text in texts]
        found = set()
        for piece, index in self._ids.items():
            inner = piece.removeprefix(self._prefix) if self._prefix else piece
            inner = inner.replace("\u2581", "").replace("Ġ", "").casefold()
            if any(inner in text for text in folded):
                found.add(index)
        return found

    def restricted(self, order: NDArray[np.int64]) -> dict[str, Any]:
        """The definition with only the pieces ``order``, renumbered."""
        new_id = {int(old): new for new, old in enumerate(order)}
        model = dict(self._model)
        if self._kind == "Unigram":
            size = len(model["vocab"])
            model["vocab"] = [model["vocab"][old] for old in order if old < size]
            if model.get("unk_id") is not None:
                model["unk_id"] = new_id[model["unk_id"]]
        else:
            model["vocab"] = {piece: new_id[old] for piece, old in self._ids.items() if old in new_id}
        if self._kind == "BPE":
            vocabulary = model["vocab"]
            model["merges"] = [
                list(merge)
                for merge in self._merges
                if merge[0] in vocabulary and merge[1] in vocabulary and "".join(merge) in vocabulary
            ]
        added = [token | {"id": new_id[token["id"]]} for token in self._definition.get("added_tokens", [])]
        processor = _renumbered(self._definition.get("post_processor"), new_id)
        return self._definition | {"model": model, "added_tokens": added, "post_processor": processor}


def _renumbered(processor: Any, new_id: dict[int, int]) -> Any:
    """A post-processor with new ids: those of templates, and of BERT's and RoBERTa's pairs (token, id)."""
    if not isinstance(processor, dict):
        return processor
    renewed = dict(processor)
    for name in ("cls", "sep"):
        if name in renewed:
            token, old = renewed[name]
            renewed[name] = [token, new_id[old]]
    if isinstance(renewed.get("special_tokens"), dict):
        renewed["special_tokens"] = {
            name: token | {"ids": [new_id[old] for old in token["ids"]]}
            for name, token in renewed["special_tokens"].items()
        }
    if "processors" in renewed:
        renewed["processors"] = [_renumbered(one, new_id) for one in renewed["processors"]]
    return renewed
