"""What a pretraining starts from: an encoder to make or to train further, a tokenizer, and full rows."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from compress.machine import require_gpu
from encoder.config import EncoderConfig
from encoder.corpus import Corpus, Packed, Survey, check_corpus, pack_texts, read_corpus, survey
from encoder.errors import CheckpointError, ConfigError, DataError, Problems, did_you_mean
from encoder.files import OutputFolder
from encoder.processes import Processes
from encoder.tokenizer import Tokenizer, load_tokenizer
from recipes.encoder_shape import read_shape
from recipes.encoders import FoundEncoder, asked_length, find_encoder
from recipes.observer import Observer, counting
from recipes.pretrain_config import TOKENIZER_KINDS, PretrainConfig
from recipes.pretrain_result import PretrainResult, read_pretraining
from recipes.resuming import TRAINING_FOLDER, check_output_folder
from recipes.training_inputs import CONVERTED, converted

if TYPE_CHECKING:
    from encoder.language_model import MaskedLanguageModel
    from encoder.masking import Masking

# Within the training's own files, so that a run that is continued has the same tokens.
TOKENIZER_FOLDER = "tokenizer"


@dataclass(frozen=True)
class Start:
    """The folder to make and the encoder to start from: ``config`` to make one, ``found`` to go on.

    ``tokenizer`` is that of a model, if it is not to be made of the corpus; ``max_length`` are the tokens of
    a row; ``finished`` is the result, where
    ``resume`` finds that all was done before.
    """

    folder: OutputFolder
    config: EncoderConfig
    found: FoundEncoder | None
    tokenizer: Tokenizer | None
    max_length: int
    finished: PretrainResult | None


def look_first(options: PretrainConfig, observer: Observer, processes: Processes) -> Start:
    """All that can be refused before a text is read. Only the first process looks at the folder to make.

    Raises:
        EncError: all that is wrong.
    """
    problems, asked = Problems(), asked_length(options)
    folder = OutputFolder(options.output, overwrite=options.overwrite, resume=options.resume)
    config, found, tokenizer, finished = None, None, None, None
    with problems.collected():
        if processes.is_first:
            folder, finished = check_output_folder("pretrain", options, observer, read_pretraining)
    with problems.collected():
        check_corpus(options.corpus)
    with problems.collected():
        if options.model is not None:
            found = find_encoder(options.model, asked)
            tokenizer = _can_mask(found.tokenizer, f"--model {options.model}")
            config = converted(options, found.config)
        else:
            assert options.config is not None
            config = read_shape(options.config, vocab_size=options.vocab_size, option="--config")
            if asked is not None and asked > config.max_tokens:
                raise ConfigError(
                    f"--max-length {asked}: {options.config} has {config.max_tokens} positions "
                    "(max_position_embeddings)"
                )
            config = converted(options, config)
    if options.tokenizer not in TOKENIZER_KINDS:
        with problems.collected():
            tokenizer = _tokenizer_of(options.tokenizer, asked)
    if options.batch_size < processes.count:
        with problems.collected():
            raise ConfigError(
                f"--batch-size {options.batch_size}: of {processes.count} processes some would have no rows; "
                "it counts the rows of all of them together"
            )
    if options.device == "cuda":
        with problems.collected():
            require_gpu(otherwise="cpu or auto")
    problems.tell(folder)
    assert config is not None
    if found is None and tokenizer is not None:
        config = config.model_copy(update={"pad_token_id": tokenizer.pad_token_id or 0})
    held = config.max_tokens if tokenizer is None else min(config.max_tokens, tokenizer.max_length)
    return Start(folder, config, found, tokenizer, asked or min(options.max_length, held), finished)


def _tokenizer_of(source: str, max_length: int | None) -> Tokenizer:
    try:
        other = find_encoder(source, max_length)
    except CheckpointError as error:
        raise CheckpointError(
            f"--tokenizer {source}: expected {' or '.join(TOKENIZER_KINDS)}, or a model whose tokenizer to "
            f"take: {error}{did_you_mean(source, TOKENIZER_KINDS)}"
        ) from error
    return _can_mask(other.tokenizer, f"--tokenizer {source}")


def _can_mask(tokenizer: Tokenizer, given: str) -> Tokenizer:
    if tokenizer.token_id("mask_token") is None:
        raise ConfigError(
            f"{given}: the tokenizer has no token to mask others with, so that no masked language model can "
            "be made of it"
        )
    return tokenizer


def read_texts(options: PretrainConfig, observer: Observer) -> tuple[Corpus, Survey]:
    """The corpus, and what is in it.

    Raises:
        DataError: it cannot be read, or there is nothing to learn from or nothing held out.
    """
    observer.stage(f"Reading {', '.join(options.corpus)}")
    corpus = read_corpus(
        options.corpus,
        text_column=options.text_column,
        encoding=options.encoding,
        fraction=options.validation_fraction,
    )
    for note in corpus.notes:
        observer.note(note)
    found = survey(corpus)
    observer.note(
        f"{found.train.texts:,} texts ({found.train.letters:,} letters) to learn from, "
        f"{found.held_out.texts:,} held out."
    )
    return corpus, found


def find_tokenizer(
    options: PretrainConfig,
    start: Start,
    corpus: Corpus,
    work: Path,
    observer: Observer,
    processes: Processes,
) -> Tokenizer:
    """That of a model, or one that the first process makes of the texts."""
    if start.tokenizer is not None:
        return start.tokenizer
    folder = work / TOKENIZER_FOLDER
    if processes.is_first and not (folder / "tokenizer.json").is_file():
        from encoder.tokenizer_training import train_tokenizer_

        observer.stage(f"Making a {options.tokenizer} tokenizer")
        folder.mkdir(parents=True, exist_ok=True)
        train_tokenizer_(
            folder,
            lambda: corpus.texts(held_out=False),
            kind="wordpiece" if options.tokenizer == "wordpiece" else "unigram",
            vocab_size=options.vocab_size,
            lowercase=options.lowercase,
            max_tokens=start.config.max_tokens,
        )
    processes.wait()
    tokenizer = load_tokenizer(
        folder, max_tokens=start.config.max_tokens, pad_token_id=start.config.pad_token_id
    )
    if tokenizer.vocab_size < options.vocab_size:
        observer.note(
            f"The texts gave {tokenizer.vocab_size:,} tokens, fewer than --vocab-size {options.vocab_size:,}."
        )
    return tokenizer


def pack(
    corpus: Corpus, found: Survey, tokenizer: Tokenizer, max_length: int, observer: Observer
) -> tuple[Packed, Packed]:
    """The rows to learn from and those held out.

    Raises:
        DataError: fewer than two rows on one side or the other.
    """
    observer.stage("Tokenizing")
    count = counting(found.train.texts + found.held_out.texts, observer)
    train, held_out = (
        pack_texts(corpus.texts(held_out=side), tokenizer, max_length, count) for side in (False, True)
    )
    if not train.tokens or not held_out.tokens:
        side = "to learn from" if not train.tokens else "held out"
        raise DataError(f"the texts {side} have no tokens")
    observer.note(
        f"{train.tokens:,} tokens in {len(train.rows):,} rows of {max_length}, {held_out.tokens:,} held out."
    )
    if unknown := train.tokens_unknown:
        share = unknown / train.tokens
        observer.note(f"{unknown:,} tokens ({share:.1%}) stand for letters outside the vocabulary.")
    return train, held_out


def make_model(
    options: PretrainConfig, start: Start, tokenizer: Tokenizer, observer: Observer
) -> "MaskedLanguageModel":
    """The model to train: drawn from the seed, or loaded."""
    from encoder.checkpoint import load_language_model
    from encoder.conversion import with_residual
    from encoder.language_model import MaskedLanguageModel
    from encoder.model import initialise_
    from encoder.training_state import STATE_FILE

    if start.found is not None:
        observer.stage(f"Loading {start.found.source}")
        model = load_language_model(start.found.folder, seed=options.seed)
        if model.new_parameters:
            count = sum(p.numel() for name, p in model.named_parameters() if name in model.new_parameters)
            observer.note(
                f"New, from random numbers: {count:,} parameters of the head that guesses tokens, which "
                f"{start.found.source} does not have."
            )
        if options.residual is None:
            return model
        observer.note(CONVERTED)
        return with_residual(model, start.config)
    model = MaskedLanguageModel(start.config.model_copy(update={"vocab_size": tokenizer.vocab_size}))
    initialise_(model, model.config, options.seed)
    begun = options.resume and (start.folder.work / TRAINING_FOLDER / STATE_FILE).exists()
    drawn = "" if begun else ", all from random numbers"
    observer.note(f"{sum(p.numel() for p in model.parameters()):,} parameters{drawn}.")
    return model


def make_masking(options: PretrainConfig, tokenizer: Tokenizer) -> "Masking":
    """What is hidden from the model."""
    from encoder.masking import Masking

    mask = tokenizer.token_id("mask_token")
    assert mask is not None
    return Masking(
        mask_token_id=mask,
        special_ids=tokenizer.special_ids,
        vocab_size=tokenizer.vocab_size,
        probability=options.mlm_probability,
        seed=options.seed,
    )
