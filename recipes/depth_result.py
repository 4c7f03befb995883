"""What a look at depth leaves behind: its run.json."""

from typing import Literal

from recipes.part import Part
from recipes.pretrain_result import Architecture
from recipes.result import Run


class DepthPoint(Part):
    """An encoder at a depth: 0 are the embeddings, d the layer that is number d − 1 from 0.

    ``stream``: the root mean square of what this depth hands on to the next. ``attention`` and
    ``feed_forward``: those of what the two sublayers make, ``None`` at depth 0; ``attention_share`` and
    ``feed_forward_share`` are relative to what each reads. ``gradient``: the length of the gradient of all
    parameters here. ``effective_rank``: of what is handed on.
    """

    depth: int
    stream: float
    attention: float | None
    attention_share: float | None
    feed_forward: float | None
    feed_forward_share: float | None
    gradient: float
    effective_rank: float


class DepthModel(Part):
    """One encoder. ``sha256`` is ``None`` for one with random weights.

    ``growth``: the stream after the last layer over that after the embeddings. ``gradient_ratio``: the
    gradient of the first layer over that of the last. ``dilution``: what the last layer's two sublayers add,
    relative to what they read, over the same of the first layer. ``loss`` is what gradients are of.
    """

    source: str
    sha256: str | None
    architecture: Architecture
    loss: float
    tokens: int
    points: tuple[DepthPoint, ...]
    growth: float | None
    gradient_ratio: float | None
    dilution: float | None

    @property
    def kind(self) -> str:
        """Its norm and its residual in words."""
        residual = {"add": "", "attention": ", attention", "block_attention": ", block attention"}
        shape = self.architecture
        return f"{shape.norm}-norm{residual.get(shape.residual, f', {shape.residual}')}"


class TransitionPart(Part):
    """From piece ``piece`` − 1 on device ``source`` to the next on ``target``: the sources that go along."""

    piece: int
    source: int
    target: int
    sources: int
    new: int


class PipelinePart(Part):
    """A pipeline on paper: see ``compress.pipeline``. Transfers are of one microbatch, forwards."""

    stages: int
    interleave: int
    microbatches: int
    blocks: int
    transitions: tuple[TransitionPart, ...]
    without_cache: int
    with_cache: int
    partial_sums: int
    bubble_share: float
    bubble_share_plain: float


class DepthResult(Run):
    """One run of `enc depth`. ``learns``: what gradients are of; ``rows`` is how many were looked at."""

    learns: Literal["labels", "hidden tokens", "hidden tokens of random rows"] | None
    rows: int
    models: tuple[DepthModel, ...]
    pipeline: PipelinePart | None
