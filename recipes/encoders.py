"""Encoders, with or without a classifier on them: looked at, and as a run.json describes them."""

from dataclasses import dataclass
from pathlib import Path

from compress.deployed import Export, read_export
from encoder.config import EncoderConfig
from encoder.errors import ConfigError
from encoder.model_folder import is_exported, read_config, read_task, read_tokenizer, resolve_model
from encoder.task import Task
from encoder.tokenizer import Tokenizer
from recipes.options import Options
from recipes.part import Part
from recipes.result import hash_model, read_result
from recipes.variant import Variant, describe_variant


@dataclass(frozen=True)
class FoundEncoder:
    """An encoder's folder, looked at but not loaded; ``source`` is how it was called.

    ``task`` is that of its classifier, where it has one. ``max_length`` is that of its fine-tuning, otherwise
    the most that it can read. ``export`` is what an exported one says of its graph.
    """

    source: str
    folder: Path
    config: EncoderConfig
    tokenizer: Tokenizer
    task: Task | None
    max_length: int
    export: Export | None


class EncoderResult(Part):
    """The encoder of a run. ``sha256`` as in ``ModelResult``."""

    source: str
    sha256: str
    family: str
    num_hidden_layers: int
    hidden_size: int
    max_length: int
    variant: Variant | None = None


def asked_length(options: Options) -> int | None:
    """``max_length`` of ``options``, where it was asked for: a default gives way to what an encoder holds."""
    asked = "max_length" in options.model_fields_set
    return getattr(options, "max_length", None) if asked else None


def find_encoder(source: str, max_length: int | None = None, *, exported: bool = False) -> FoundEncoder:
    """The encoder at ``source``; ``max_length``, where it is given, replaces its own.

    ``exported``: one that `enc export` wrote is welcome too.

    Raises:
        CheckpointError: no model there. ConfigError: it does not hold so many tokens.
    """
    folder = resolve_model(source, exported=exported)
    config, tokenizer, before = read_config(folder), read_tokenizer(folder), read_result(folder)
    if max_length is not None and max_length > tokenizer.max_length:
        raise ConfigError(f"--max-length {max_length}: {source} holds {tokenizer.max_length} tokens at most")
    own = before.model.max_length if before else tokenizer.max_length
    export = read_export(folder) if is_exported(folder) else None
    if export is not None:
        own = export.max_length
    return FoundEncoder(source, folder, config, tokenizer, read_task(folder), max_length or own, export)


def describe_encoder(found: FoundEncoder) -> EncoderResult:
    """``found`` as a run.json describes it."""
    return EncoderResult(
        source=found.source,
        sha256=hash_model(found.folder),
        family=found.config.family,
        num_hidden_layers=found.config.num_hidden_layers,
        hidden_size=found.config.hidden_size,
        max_length=found.max_length,
        variant=describe_variant(found.config),
    )
