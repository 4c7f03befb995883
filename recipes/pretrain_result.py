"""What a pretraining leaves behind: its run.json."""

from pathlib import Path

from pydantic import ValidationError

from encoder.config import EncoderConfig
from encoder.corpus import Packed, Survey
from encoder.errors import CheckpointError
from recipes.part import Part
from recipes.result import RUN_FILE, Run, TrainingResult
from recipes.variant import Variant


class Architecture(Variant):
    """The shape of an encoder, as far as its layers are alike: those of the first one are told."""

    num_hidden_layers: int
    hidden_size: int
    num_attention_heads: int
    intermediate_size: int
    parameters: int


class MadeEncoder(Part):
    """The encoder that was made; ``sha256`` as in ``ModelResult``. Its shape is the ``Architecture``."""

    source: str
    sha256: str
    family: str
    max_length: int


class CorpusResult(Part):
    """The texts that were learnt from and those held out. ``fingerprint`` is a hash of all of them.

    ``tokens`` are those of the texts, ``rows`` what they were laid into; ``tokens_unknown`` have no piece in
    the vocabulary.
    """

    sources: tuple[str, ...]
    fingerprint: str
    train_texts: int
    train_letters: int
    train_tokens: int
    train_rows: int
    held_out_texts: int
    held_out_tokens: int
    held_out_rows: int
    tokens_unknown: int


class TokenizerResult(Part):
    """The tokenizer: ``kind`` is ``None`` for that of a model."""

    kind: str | None
    vocab_size: int
    lowercase: bool | None


class PretrainResult(Run):
    """One run of `enc pretrain`. ``parent`` is the model that was trained further, if any.

    ``held_out`` is what the model that was kept makes of held-out rows, ``before`` what the one that was
    started from did: ``loss`` in nats a token, ``perplexity``, ``accuracy``. ``tokens_per_s`` counts all
    ``processes`` together, and updates only.
    """

    encoder: MadeEncoder
    architecture: Architecture
    corpus: CorpusResult
    tokenizer: TokenizerResult
    training: TrainingResult
    processes: int
    tokens_per_s: float
    before: dict[str, float]
    held_out: dict[str, float]
    bytes_on_disk: int


def describe_corpus(sources: tuple[str, ...], found: Survey, train: Packed, held_out: Packed) -> CorpusResult:
    """The texts of ``sources``, as they were ``found`` and packed."""
    return CorpusResult(
        sources=sources,
        fingerprint=found.fingerprint,
        train_texts=found.train.texts,
        train_letters=found.train.letters,
        train_tokens=train.tokens,
        train_rows=len(train.rows),
        held_out_texts=found.held_out.texts,
        held_out_tokens=held_out.tokens,
        held_out_rows=len(held_out.rows),
        tokens_unknown=train.tokens_unknown,
    )


def describe_architecture(config: EncoderConfig, parameters: int) -> Architecture:
    """``config`` as a run.json describes it."""
    first = config.layers[0]
    named = {name: getattr(config, name) for name in Architecture.model_fields if hasattr(config, name)}
    return Architecture(
        **named
        | {
            "num_attention_heads": first.num_attention_heads,
            "intermediate_size": first.intermediate_size,
            "parameters": parameters,
        }
    )


def read_pretraining(folder: Path) -> PretrainResult | None:
    """The result in ``folder``/run.json, or ``None`` where there is none.

    Raises:
        CheckpointError: run.json is there and is not one of `enc pretrain`.
    """
    path = folder / RUN_FILE
    if not path.is_file():
        return None
    try:
        return PretrainResult.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise CheckpointError(
            f"{path}: not a run of enc pretrain; choose another --output, or --overwrite to replace it"
        ) from error
