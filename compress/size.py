"""How big a model is: parameters, bytes on disk, and multiply-accumulates per token."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

from encoder.config import EncoderConfig, LayerShape

if TYPE_CHECKING:
    from encoder.model import Classifier

# Where a row's work is done, in the order in which it is met. `enc profile` shows the same parts.
PARTS = ("embeddings", "projections", "scores and mixing", "feed-forward", "classifier")

# In the folder of a compressed model, the model as it was before its export.
TORCH_FOLDER = "torch"
# What a run leaves in the folder beside the model. Everything else is needed to use the model.
NOT_THE_MODEL = (
    *("run.json", "report.*", "predictions.*", "*.log", ".*"),
    *("MODEL_CARD.md", "SHA256SUMS", "example.py"),
)


class Size(BaseModel):
    """The size of a classifier.

    ``parameters_without_embeddings`` leaves out the word, position and type tables, which cost memory but no
    time. ``bytes_on_disk`` counts all files of the model: weights, config, tokenizer, labels; not run.json
    and logs. ``macs_per_token`` maps a row's length to multiply-accumulates a token.
    """

    model_config = ConfigDict(frozen=True)

    parameters: int
    parameters_without_embeddings: int
    bytes_on_disk: int
    macs_per_token: dict[int, float]


def measure_size(model: "Classifier", folder: Path, *, sequence_lengths: Iterable[int] = (128,)) -> Size:
    """The size of ``model`` as saved in ``folder``; ``macs_per_token`` at each of ``sequence_lengths``."""
    parameters = sum(parameter.numel() for parameter in model.parameters())
    return Size(
        parameters=parameters,
        parameters_without_embeddings=parameters - embedding_parameters(model.config),
        bytes_on_disk=bytes_on_disk(folder),
        macs_per_token={
            length: macs_per_token(model.config, length, num_outputs=model.task.num_outputs)
            for length in sequence_lengths
        },
    )


def embedding_parameters(config: EncoderConfig) -> int:
    """Parameters of the word, position and type tables."""
    positions = 0 if config.position_embedding == "rotary" else config.max_position_embeddings
    rows = config.vocab_size + positions + config.type_vocab_size
    return rows * config.embedding_size


def matrix_parameters(config: EncoderConfig) -> int:
    """Parameters of all tables and matrices, known before a model is loaded: all but a thousandth of them."""
    layers = sum(
        4 * shape.num_attention_heads * shape.head_size + (3 if config.gated else 2) * shape.intermediate_size
        for shape in config.layers
    )
    return embedding_parameters(config) + config.hidden_size * (layers + config.hidden_size)


def bytes_on_disk(folder: Path) -> int:
    """Bytes of all files of the model in ``folder``; links count as what they point to."""
    return sum(path.stat().st_size for path in model_files(folder))


def model_files(folder: Path) -> list[Path]:
    """All files in ``folder`` but those of ``NOT_THE_MODEL``, sorted; folders in it are other models'."""
    return [
        path
        for path in sorted(folder.iterdir())
        if path.is_file() and not any(path.match(pattern) for pattern in NOT_THE_MODEL)
    ]


def macs_per_token(config: EncoderConfig, tokens: int, *, num_outputs: int) -> float:
    """Multiply-accumulates per token of one row of ``tokens`` tokens, without padding."""
    return sum(macs_per_row(config, tokens, num_outputs=num_outputs).values()) / tokens


def macs_per_row(config: EncoderConfig, tokens: int, *, num_outputs: int) -> Mapping[str, int]:
    """Multiply-accumulates of one row of ``tokens`` (T) tokens, for each of ``PARTS``.

    Matrix products only, as is usual (a MAC is two floating-point operations): norms, softmax, activations,
    mixes over depth and table look-ups are not counted, nor are biases. With H heads of size K and F neurons
    a layer has 4·T·D·H·K for the projections, 2·H·K for scores and mixing of each pair of tokens that see
    each other (all T², or those within a window), 2·T·D·F for the feed-forward block, 3·T·D·F if gated. The
    classifier sees one vector, D·D + D·C; where that is the first token's the last layer computes no other:
    half of its projections (keys and values) stay at T tokens, the rest of it is for one.
    """
    T, D, E = tokens, config.hidden_size, config.embedding_size
    layers: tuple[LayerShape, ...] = config.layers
    matrices = 3 if config.gated else 2
    projections = pairs = feed_forward = 0
    for number, layer in enumerate(layers):
        width = layer.num_attention_heads * layer.head_size
        only_first = number == len(layers) - 1 and config.reads_first_token_only
        asking = 1 if only_first else T
        projections += 2 * (T + asking) * D * width
        pairs += 2 * _visible_pairs(T, layer.window, only_first) * width
        feed_forward += matrices * asking * D * layer.intermediate_size
    counts = (
        T * E * D if E != D else 0,
        projections,
        pairs,
        feed_forward,
        D * D + D * num_outputs,
    )
    return dict(zip(PARTS, counts, strict=True))


def _visible_pairs(tokens: int, window: int | None, only_first: bool) -> int:
    """Of how many tokens each token takes something, summed; or the first alone."""
    reach = tokens - 1 if window is None else min(window, tokens - 1)
    if only_first:
        return reach + 1
    return tokens * (2 * reach + 1) - reach * (reach + 1)
