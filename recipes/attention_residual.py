"""What each sublayer of one with attention residuals takes of those before it, on one text."""

from typing import TYPE_CHECKING

from encoder.config import EncoderConfig
from encoder.errors import ConfigError
from encoder.rows import TokenizedRows
from recipes.part import Part

if TYPE_CHECKING:
    from encoder.model import Classifier, Encoder


class SourceResult(Part):
    """What can be read: the embeddings, a sublayer's output, or the sum of a block of them.

    ``effect`` is what it adds to the logit of the answer; ``None`` where there is no answer.
    """

    name: str
    effect: float | None


class ReaderResult(Part):
    """A sublayer, or the end; ``weights`` are what it takes of the first sources, in their order."""

    name: str
    weights: tuple[float, ...]


class ResidualResult(Part):
    """The map of depth by depth, and the ablation of each source.

    Weights are means over the tokens of the text; the end's are those of the first token where a classifier
    looks at no other. ``block_size``: sublayers in a block, ``None`` where each is a source.
    """

    block_size: int | None
    sources: tuple[SourceResult, ...]
    readers: tuple[ReaderResult, ...]


def check_residual(config: EncoderConfig, source: str) -> None:
    """Raise ``ConfigError`` where no sublayer of the model ``source`` weighs those before it."""
    if config.residual == "add":
        raise ConfigError(
            f"--residual: the sublayers of {source} are added up, so none weighs those before it; `enc "
            "finetune --residual attention` makes a model of a pre-norm one whose sublayers do"
        )


def look_at_residual(
    encoder: "Encoder", model: "Classifier | None", row: TokenizedRows, output: int | None
) -> ResidualResult:
    """The map of the only row of ``row``, and each source's effect on logit number ``output``, if any."""
    from compress.attention_view import find_mixes, source_effects

    mixes = find_mixes(encoder, row)
    effects: list[float | None] = [None] * len(mixes[-1])
    if model is not None and output is not None:
        effects = [float(effect) for effect in source_effects(model, row, output)]
    config = encoder.config
    return ResidualResult(
        block_size=config.residual_block_size,
        sources=tuple(
            SourceResult(name=name, effect=effect)
            for name, effect in zip(source_names(config), effects, strict=True)
        ),
        readers=tuple(
            ReaderResult(name=name, weights=tuple(map(float, mix)))
            for name, mix in zip((*_sublayers(config), "the end"), mixes, strict=True)
        ),
    )


def source_names(config: EncoderConfig) -> list[str]:
    """The embeddings, then each sublayer or each block by its first and its last."""
    names, size = _sublayers(config), config.residual_block_size or 1
    blocks = [names[start : start + size] for start in range(0, len(names), size)]
    joined = [block[0] if len(block) == 1 else f"{block[0]} … {block[-1]}" for block in blocks]
    return ["embeddings", *joined]


def _sublayers(config: EncoderConfig) -> list[str]:
    layers = range(config.num_hidden_layers)
    return [f"{layer} {kind}" for layer in layers for kind in ("attention", "feed-forward")]
