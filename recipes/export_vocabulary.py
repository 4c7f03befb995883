"""A model with only the pieces of its vocabulary that some texts need."""

from dataclasses import replace
from typing import TYPE_CHECKING

from encoder.texts import TextRows, read_texts
from recipes.export_config import ExportConfig
from recipes.observer import Observer

if TYPE_CHECKING:
    from recipes.export_inputs import ExportInputs

LINES_SUFFIX = ".txt"


def read_vocabulary_texts(options: ExportConfig, *, pair: bool) -> TextRows | None:
    """The texts of ``prune_vocab``; both columns where the model takes pairs; ``None`` without the option.

    Raises:
        DataError: they cannot be read.
    """
    if options.prune_vocab is None:
        return None
    path = options.prune_vocab
    return read_texts(path, pair=pair and path.suffix.lower() != LINES_SUFFIX, encoding=options.encoding)


def prune_inputs_vocabulary(inputs: "ExportInputs", texts: TextRows, observer: Observer) -> "ExportInputs":
    """``inputs`` with a smaller model and tokenizer, which treat ``texts`` as before.

    Raises:
        CompressionError: the tokenizer is of a kind that cannot be cut down.
    """
    from compress.vocabulary import prune_vocabulary

    observer.stage("Cutting the vocabulary down")
    model, tokenizer = prune_vocabulary(inputs.model, inputs.tokenizer, texts.texts, texts.pairs)
    before, after = inputs.model.config.vocab_size, model.config.vocab_size
    observer.note(
        f"Vocabulary: {after:,} of {before:,} pieces stay, those of {len(texts.texts):,} texts and all "
        "single characters. Other texts may fall into more pieces."
    )
    return replace(inputs, model=model, tokenizer=tokenizer)
