"""What attention residuals in blocks cost a pipeline of devices, on paper: transfers, and idle time.

A pipeline has P stages (devices), each with V pieces of the model, dealt out in turn: piece k runs on device
k mod P (the interleaved schedule of Narayanan et al. 2021, arXiv 2104.04473; V = 1 is 1F1B). From piece to
piece a plain residual hands on one tensor. Attention residuals in N blocks (Kimi Team 2026, arXiv 2603.15031)
hand on every source that a later block reads: the embeddings and the sums of the blocks that are finished.
A device that keeps what it has received and made need not be sent it again when its next piece comes.

Nothing here is measured: it is counted, from the rules above.
"""

from dataclasses import dataclass

from pydantic import Field, ValidationError

from encoder.config import Strict
from encoder.errors import ConfigError, did_you_mean


class Pipeline(Strict):
    """P ``stages``, V = ``interleave`` pieces on each, batches of ``microbatches``, and N ``blocks``.

    The blocks divide the depth evenly, and so do the pieces.
    """

    stages: int = Field(ge=2)
    interleave: int = Field(default=1, ge=1)
    microbatches: int = Field(ge=1)
    blocks: int | None = Field(default=None, ge=1)


@dataclass(frozen=True)
class Transition:
    """From piece ``piece`` − 1 to piece ``piece``: how many sources go along, and how many are new there."""

    piece: int
    source: int
    target: int
    sources: int
    new: int


@dataclass(frozen=True)
class Traffic:
    """All transitions of one microbatch's forward pass, and how many partial sums travel beside."""

    transitions: tuple[Transition, ...]
    partial_sums: int

    @property
    def without_cache(self) -> int:
        """Transfers of sources where every transition carries all of them."""
        return sum(one.sources for one in self.transitions)

    @property
    def with_cache(self) -> int:
        """Transfers where devices keep what they have."""
        return sum(one.new for one in self.transitions)


def parse_pipeline(text: str) -> Pipeline:
    """The pipeline that ``stages=4,interleave=2,microbatches=8,blocks=4`` describes.

    Raises:
        ConfigError: all that is wrong with it.
    """
    given, problems = dict[str, str](), list[str]()
    for part in filter(None, (one.strip() for one in text.split(","))):
        name, _, value = (one.strip() for one in part.partition("="))
        if name not in Pipeline.model_fields:
            known = ", ".join(Pipeline.model_fields)
            problems.append(f"{part!r}: expected {known}{did_you_mean(name, Pipeline.model_fields)}")
        elif name in given:
            problems.append(f"{name} is given twice")
        else:
            given[name] = value
    try:
        made = Pipeline.model_validate(given)
    except ValidationError as error:
        for one in error.errors():
            name = str(one["loc"][0])
            least = 2 if name == "stages" else 1
            found = "missing" if one["type"] == "missing" else repr(one["input"])
            problems.append(f"{name} is {found}; expected a whole number, {least} or more")
        made = None
    if made is not None and made.interleave > 1 and made.microbatches % made.stages:
        problems.append(
            f"microbatches is {made.microbatches}; the interleaved schedule needs a multiple of the "
            f"{made.stages} stages"
        )
    if problems or made is None:
        raise ConfigError.from_problems([f"--pipeline {text}: {problem}" for problem in problems])
    return made


def count_transfers(pipeline: Pipeline, blocks: int) -> Traffic:
    """The transfers of ``blocks`` block sums and the embeddings through ``pipeline``.

    After k of the C = P·V pieces ⌊k·N/C⌋ blocks are finished. Where a block is not, its partial sum goes
    along as the stream of a plain residual does: it is counted apart, for no device could have kept it.
    """
    P, C = pipeline.stages, pipeline.stages * pipeline.interleave
    finished = [piece * blocks // C for piece in range(C + 1)]
    kept: dict[int, int] = dict.fromkeys(range(P), 0)  # sources 0 … n−1 are on the device
    kept[0] = 1 + finished[1]
    transitions = []
    for piece in range(1, C):
        source, target = (piece - 1) % P, piece % P
        needed = 1 + finished[piece]
        transitions.append(Transition(piece, source, target, needed, needed - min(needed, kept[target])))
        kept[target] = max(needed, 1 + finished[piece + 1])  # what it receives, and what it finishes itself
    partial = sum(1 for piece in range(1, C) if piece * blocks % C)
    return Traffic(tuple(transitions), partial)


def bubble_share(pipeline: Pipeline) -> float:
    """The share of the time of a batch in which a device waits: (P−1) / (V·m + P−1).

    Narayanan et al. 2021, section 2.2, have it relative to the time it works: (P−1) / (V·m).
    """
    waiting = pipeline.stages - 1
    return waiting / (pipeline.interleave * pipeline.microbatches + waiting)
