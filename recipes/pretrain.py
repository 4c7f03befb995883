"""Pretrain an encoder on texts without labels: a `PretrainConfig` in, a model folder and its result out.

`torchrun` may start several processes of it, which train one model together; the first one speaks and writes.
"""

import hashlib
import time
from pathlib import Path
from typing import TYPE_CHECKING

from encoder.corpus import Packed, Survey
from encoder.files import write_atomic
from encoder.processes import Processes, find_processes
from encoder.tokenizer import Tokenizer
from recipes.account import describe_run
from recipes.observer import Observer, Recorder, Silent
from recipes.pretrain_config import PretrainConfig
from recipes.pretrain_inputs import (
    Start,
    find_tokenizer,
    look_first,
    make_masking,
    make_model,
    pack,
    read_texts,
)
from recipes.pretrain_result import (
    MadeEncoder,
    PretrainResult,
    TokenizerResult,
    describe_architecture,
    describe_corpus,
)
from recipes.result import RUN_FILE, Parent, TrainingResult, describe_parent, hash_model
from recipes.resuming import TRAINING_FOLDER, claim, finish
from recipes.scoring import choose_device, choose_precision

if TYPE_CHECKING:
    from encoder.language_model import MaskedLanguageModel
    from encoder.training_config import TrainingConfig

# A model that knows a language already is trained further at this share of the usual rate.
FURTHER = 0.2


def pretrain(config: PretrainConfig, observer: Observer | None = None) -> PretrainResult | None:
    """Make or load an encoder, train it to guess hidden tokens, score it on held-out texts, save it.

    With ``resume`` a run of the same options goes on where it was interrupted; one that is finished is
    returned as it is. Of several processes only the first returns a result.

    Raises:
        ConfigError, DataError, CheckpointError: before any training, with all that is wrong of a kind.
    """
    started = time.perf_counter()
    processes = find_processes()
    recorder = Recorder((observer or Silent()) if processes.is_first else Silent())
    start = look_first(config, recorder, processes)
    if start.finished is not None:
        return start.finished
    config = config.model_copy(update={"max_length": start.max_length})
    device = choose_device(config.device, config.threads)
    with processes.joined(device):
        corpus, found = read_texts(config, recorder)
        parent = None
        if start.found is not None:
            parent = describe_parent(start.found.source, start.found.folder)
        work = _claim(config, start, found, parent, processes)
        tokenizer = find_tokenizer(config, start, corpus, work, recorder, processes)
        train, held_out = pack(corpus, found, tokenizer, config.max_length, recorder)
        model = make_model(config, start, tokenizer, recorder)
        before, trained = _train(config, model, tokenizer, train, held_out, work, device, recorder, processes)
        if not processes.is_first:
            return None
        _save(model, tokenizer, start, recorder)
    result = _account(config, start, model, tokenizer, found, (train, held_out), before, trained, parent,
                      processes, recorder, seconds=time.perf_counter() - started)  # fmt: skip
    write_atomic(start.folder.work / RUN_FILE, result.to_json())
    finish(start.folder)
    return result


def _claim(
    config: PretrainConfig, start: Start, found: Survey, parent: Parent | None, processes: Processes
) -> Path:
    """The folder of the training's own files, made by the first process."""
    if processes.is_first:
        known = "" if start.tokenizer is None else start.tokenizer.fingerprint
        shape = hashlib.sha256((start.config.model_dump_json() + known).encode()).hexdigest()
        claim(
            start.folder,
            config,
            model=shape if parent is None else parent.sha256,
            data=found.fingerprint,
            free=("corpus", "config"),
        )
    processes.wait()
    return start.folder.work / TRAINING_FOLDER


def _train(
    config: PretrainConfig,
    model: "MaskedLanguageModel",
    tokenizer: Tokenizer,
    train: Packed,
    held_out: Packed,
    work: Path,
    device: str,
    observer: Observer,
    processes: Processes,
) -> tuple[dict[str, float], TrainingResult]:
    """Train ``model``: what it made of the held-out rows before, and how training went."""
    import torch

    from encoder.freezing import Frozen
    from encoder.language_model import score_guesses
    from encoder.masking import MaskedTokens
    from encoder.training import train_
    from recipes.trained import describe_training, telling_resumed

    masking, training = make_masking(config, tokenizer), _training_config(config, model, device)

    def validate() -> dict[str, float]:
        return score_guesses(model, held_out.rows, masking, device=device, processes=processes)

    model.to(device)
    before = validate()
    together = f", {processes.count} processes" if processes.count > 1 else ""
    observer.stage(
        f"Training on {device} in {training.precision}, learning rate {training.learning_rate:.2g}, "
        f"threads: {torch.get_num_threads()}{together}"
    )
    outcome = train_(
        model,
        train.rows,
        None,
        training,
        work_folder=work,
        resume=config.resume,
        device=device,
        on_progress=observer.training,
        on_resume=telling_resumed(observer),
        objective=MaskedTokens(masking, train.rows),
        validate=validate,
        processes=processes,
    )
    total = sum(parameter.numel() for parameter in model.parameters())
    trains = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
    frozen = Frozen(trains, total, "Nothing is frozen.")
    return before, describe_training(model, frozen, outcome, training, device)


def _training_config(config: PretrainConfig, model: "MaskedLanguageModel", device: str) -> "TrainingConfig":
    """What the options say of training; all layers learn at one rate."""
    from encoder.optimizer import usual_pretraining_rate
    from encoder.training_config import TrainingConfig

    usual = usual_pretraining_rate(model.config.hidden_size) * (1.0 if config.model is None else FURTHER)
    given = {name: getattr(config, name) for name in TrainingConfig.model_fields if hasattr(config, name)}
    decided = {
        "precision": choose_precision(config.precision, device),
        "learning_rate": config.learning_rate or usual,
        "layer_decay": 1.0,
        "best_metric": "loss",
    }
    return TrainingConfig(**given | decided)


def _save(model: "MaskedLanguageModel", tokenizer: Tokenizer, start: Start, observer: Observer) -> None:
    from encoder.checkpoint import save_language_model

    observer.stage(f"Saving {start.folder.path}")
    save_language_model(model, tokenizer, start.folder.work)


def _account(
    config: PretrainConfig,
    start: Start,
    model: "MaskedLanguageModel",
    tokenizer: Tokenizer,
    found: Survey,
    packed: tuple[Packed, Packed],
    before: dict[str, float],
    training: TrainingResult,
    parent: Parent | None,
    processes: Processes,
    recorder: Recorder,
    *,
    seconds: float,
) -> PretrainResult:
    from compress.size import bytes_on_disk

    train, held_out = packed
    tokens_a_row = len(train.rows.input_ids) / len(train.rows)
    kept = training.epochs[training.best_epoch - 1].validation
    assert kept is not None
    made = start.tokenizer is None
    return PretrainResult(
        **describe_run(
            "pretrain",
            config,
            seconds=seconds,
            output=config.output,
            seed=config.seed,
            parent=parent,
            notes=recorder.notes,
        ),
        encoder=MadeEncoder(
            source=str(config.output),
            sha256=hash_model(start.folder.work),
            family=model.config.family,
            max_length=config.max_length,
        ),
        architecture=describe_architecture(model.config, training.total_parameters),
        corpus=describe_corpus(config.corpus, found, train, held_out),
        tokenizer=TokenizerResult(
            kind=config.tokenizer if made else None,
            vocab_size=tokenizer.vocab_size,
            lowercase=config.lowercase if made else None,
        ),
        training=training,
        processes=processes.count,
        tokens_per_s=training.rows_per_s * tokens_a_row,
        before=before,
        held_out={name: value for name, value in kept.items() if value is not None},
        bytes_on_disk=bytes_on_disk(start.folder.work),
    )
