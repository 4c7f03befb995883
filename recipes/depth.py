"""What becomes of tokens and gradients with depth: a `DepthConfig` in, a `DepthResult` out."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import numpy as np

from compress.pipeline import Pipeline, bubble_share, count_transfers
from encoder.config import EncoderConfig
from encoder.errors import ConfigError
from encoder.rows import TokenizedRows
from recipes.account import describe_run
from recipes.depth_config import DepthConfig
from recipes.depth_inputs import (
    Subject,
    Texts,
    choose_tokenizer,
    look_first,
    make_rows,
    read_texts,
    usual_length,
)
from recipes.depth_result import DepthModel, DepthPoint, DepthResult, PipelinePart, TransitionPart
from recipes.observer import Observer, Recorder, Silent
from recipes.pretrain_result import describe_architecture
from recipes.result import describe_parent, hash_model, save_run
from recipes.scoring import choose_device

if TYPE_CHECKING:
    from encoder.depth import Depths
    from encoder.language_model import MaskedLanguageModel
    from encoder.model import Classifier
    from encoder.tokenizer import Tokenizer

BATCH_ROWS = 16


def depth(config: DepthConfig, observer: Observer | None = None) -> DepthResult:
    """The size of the stream, what sublayers add, effective ranks and gradients, layer by layer.

    With ``pipeline`` also what block sums cost a pipeline of devices, on paper.

    Raises:
        ConfigError, DataError, CheckpointError: before anything is computed.
    """
    started = time.perf_counter()
    recorder = Recorder(observer or Silent())
    folder, subjects = look_first(config)
    pipeline = config.parsed_pipeline
    on_paper = None if pipeline is None else _describe_pipeline(pipeline, subjects, recorder)
    models: list[DepthModel] = []
    if subjects:
        config = config.model_copy(update={"max_length": usual_length(config, subjects)})
        device = choose_device(config.device, config.threads)
        texts = read_texts(config, recorder)
        tokenizer = choose_tokenizer(subjects, texts, config, recorder)
        models = [_look(subject, tokenizer, texts, config, device, recorder) for subject in subjects]
    first = next((subject.found for subject in subjects if subject.found is not None), None)
    result = DepthResult(
        **describe_run(
            "depth",
            config,
            seconds=time.perf_counter() - started,
            output=config.output,
            seed=config.seed,
            parent=None if first is None else describe_parent(first.source, first.folder),
            notes=recorder.notes,
        ),
        learns=_learns(config) if models else None,
        rows=config.rows if models else 0,
        models=tuple(models),
        pipeline=on_paper,
    )
    save_run(result, folder)
    return result


def _learns(config: DepthConfig) -> str:
    if config.data is not None:
        return "labels"
    return "hidden tokens" if config.corpus else "hidden tokens of random rows"


def _look(
    subject: Subject,
    tokenizer: "Tokenizer | None",
    texts: Texts,
    options: DepthConfig,
    device: str,
    observer: Observer,
) -> DepthModel:
    """Everything about one encoder."""
    from encoder.batches import Batch
    from encoder.depth import gradient_norms, measure_depth
    from encoder.masking import MaskedTokens, Masking
    from encoder.objective import Supervised

    observer.stage(f"Looking at {subject.source}")
    config, rows, special, mask = make_rows(subject, tokenizer, texts, options)
    model = _load(subject, config, texts, options, observer).to(device)
    task = texts.task
    if task is not None:
        assert rows.labels is not None
        objective: Supervised | MaskedTokens = Supervised(task, rows.labels)
    else:
        masking = Masking(mask, special, config.vocab_size, seed=options.seed)
        objective = MaskedTokens(masking, rows)

    def batches() -> Iterator[tuple[Batch, np.ndarray[tuple[int], np.dtype[np.int64]]]]:
        for start in range(0, len(rows), BATCH_ROWS):
            index = np.arange(start, min(start + BATCH_ROWS, len(rows)))
            yield objective.prepare(Batch.from_rows(rows.select(index)), index, 0).to(device), index

    found = measure_depth(model.encoder, (batch for batch, _ in batches()))
    weight, loss = objective.weight(np.arange(len(rows)), 0), 0.0
    for batch, index in batches():
        part = objective.summed_loss(model(batch), batch, index) / weight
        part.backward()
        loss += float(part.detach())
        observer.working(int(index[-1]) + 1, len(rows))
    return _describe(subject, model, rows, found, gradient_norms(model, model.encoder), loss)


def _load(
    subject: Subject, config: EncoderConfig, texts: Texts, options: DepthConfig, observer: Observer
) -> "Classifier | MaskedLanguageModel":
    """The encoder with what its loss needs on top of it; says what of that is random."""
    from encoder.checkpoint import load_classifier, load_language_model
    from encoder.language_model import MaskedLanguageModel
    from encoder.model import Classifier, initialise_

    model: Classifier | MaskedLanguageModel
    if subject.found is None:
        model = MaskedLanguageModel(config) if texts.task is None else Classifier(config, texts.task)
        initialise_(model, config, options.seed)
        return model.eval()
    if texts.task is not None:
        model = load_classifier(subject.found.folder, task=texts.task, seed=options.seed)
    else:
        model = load_language_model(subject.found.folder, seed=options.seed)
    if model.new_parameters:
        what = "the classifier" if texts.task is not None else "the head that guesses tokens"
        observer.note(f"{subject.source}: {what} is new, from random numbers; its gradients show that.")
    return model


def _describe(
    subject: Subject,
    model: "Classifier | MaskedLanguageModel",
    rows: TokenizedRows,
    found: "Depths",
    gradients: Sequence[float],
    loss: float,
) -> DepthModel:
    points = []
    for number, stream in enumerate(found.streams):
        attention = found.attention[number - 1] if number else None
        feed_forward = found.feed_forward[number - 1] if number else None
        points.append(
            DepthPoint(
                depth=number,
                stream=stream,
                attention=None if attention is None else attention.made,
                attention_share=None if attention is None else _ratio(attention.made, attention.read),
                feed_forward=None if feed_forward is None else feed_forward.made,
                feed_forward_share=None
                if feed_forward is None
                else _ratio(feed_forward.made, feed_forward.read),
                gradient=gradients[number],
                effective_rank=found.effective_ranks[number],
            )
        )
    return DepthModel(
        source=subject.source,
        sha256=None if subject.found is None else hash_model(subject.found.folder),
        architecture=describe_architecture(model.config, sum(p.numel() for p in model.parameters())),
        loss=loss,
        tokens=len(rows.input_ids),
        points=tuple(points),
        growth=_ratio(points[-1].stream, points[0].stream),
        gradient_ratio=_ratio(points[1].gradient, points[-1].gradient),
        dilution=_ratio(_added(points[-1]), _added(points[1])),
    )


def _added(point: DepthPoint) -> float:
    """What a layer adds to what its sublayers read, both together."""
    return (point.attention_share or 0.0) + (point.feed_forward_share or 0.0)


def _ratio(above: float, below: float) -> float | None:
    return above / below if below else None


def _describe_pipeline(pipeline: Pipeline, subjects: Sequence[Subject], observer: Observer) -> PipelinePart:
    blocks = pipeline.blocks
    if blocks is None:
        blocks = _blocks_of(subjects, pipeline)
        observer.note(f"{blocks} blocks: say blocks=N in --pipeline for another number.")
    traffic = count_transfers(pipeline, blocks)
    return PipelinePart(
        stages=pipeline.stages,
        interleave=pipeline.interleave,
        microbatches=pipeline.microbatches,
        blocks=blocks,
        transitions=tuple(TransitionPart(**asdict(one)) for one in traffic.transitions),
        without_cache=traffic.without_cache,
        with_cache=traffic.with_cache,
        partial_sums=traffic.partial_sums,
        bubble_share=bubble_share(pipeline),
        bubble_share_plain=bubble_share(pipeline.model_copy(update={"interleave": 1})),
    )


def _blocks_of(subjects: Sequence[Subject], pipeline: Pipeline) -> int:
    """Those of the encoders that have some; otherwise as many as there are stages."""
    found = {
        -(-2 * subject.config.num_hidden_layers // size)
        for subject in subjects
        if (size := subject.config.residual_block_size) is not None
    }
    if len(found) > 1:
        numbers = ", ".join(map(str, sorted(found)))
        raise ConfigError(f"--pipeline: the encoders have {numbers} blocks; say which is meant with blocks=N")
    return found.pop() if found else pipeline.stages
