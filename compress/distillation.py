"""What a student learns from its teacher: answers, hidden states, relations between tokens.

Each loss is a mean within a row and summed over rows, so that a row counts the same whatever is in its batch;
tokens that do not exist are in no batch, and the row that fills a batch up counts for nothing.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn

from compress.teacher import Targets
from compress.watching import Points, Watched
from encoder.batches import Batch
from encoder.config import EncoderConfig, Strict
from encoder.linear import Linear
from encoder.losses import balanced_weights, summed_loss
from encoder.packing import Packing
from encoder.task import Task

HiddenLoss = Literal["mse", "cosine"]
# Scores between tokens of different rows: their exponential is 0, and no difference of two of them is NaN.
APART = -1e4
# Relation heads are as wide as this where nobody says otherwise: 48 of a width of 768, as MiniLMv2 has it.
RELATION_HEAD_SIZE = 16


class Weights(Strict):
    """How much each loss counts: soft targets, hard labels, hidden states, relations, embeddings."""

    soft: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    hard: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    hidden: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    relations: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    embeddings: float = Field(default=0.0, ge=0, allow_inf_nan=False)


class DistillationConfig(Strict):
    """All that decides the loss. ``states``: student's hidden state → teacher's; ``layers``: the student's
    and the teacher's layer whose relations are compared, from 0."""

    weights: Weights
    temperature: float = Field(default=2.0, gt=0)
    hidden_loss: HiddenLoss = "mse"
    states: Mapping[int, int] = {}
    layers: tuple[int, int] = (0, 0)
    num_relation_heads: int = Field(default=1, ge=1)
    label_smoothing: float = 0.0
    balanced: bool = False

    @property
    def pairs(self) -> dict[int, int]:
        """The hidden states that are compared, the embeddings (0) among them where they count."""
        pairs = dict(self.states) if self.weights.hidden > 0 else {}
        return pairs | ({0: 0} if self.weights.embeddings > 0 else {})

    @property
    def student_points(self) -> Points:
        """What of the student's forward pass is needed."""
        related = self.weights.relations > 0
        return Points(frozenset(self.pairs), frozenset(self.layers[:1] if related else ()))

    @property
    def teacher_points(self) -> Points:
        """What of the teacher's is."""
        related = self.weights.relations > 0
        return Points(frozenset(self.pairs.values()), frozenset(self.layers[1:] if related else ()))


def soft_losses(task: Task, logits: Tensor, targets: Tensor, temperature: float) -> Tensor:
    """How far the answers [B, C] of each row are from the teacher's: [B], 0 where they are equal.

    Single-label: T²·KL(softmax(z_t/T) ‖ softmax(z_s/T)) (Hinton et al. 2015, section 2; its factor T² keeps
    gradients as large as at T = 1). Multi-label: the same for each label by itself, sigmoids instead, mean
    over the C labels: its gradient is that of binary cross-entropy with the teacher's probabilities.
    Regression: the squared difference, whatever T.
    """
    logits, targets = logits.float(), targets.float()
    T = temperature
    if task.kind == "regression":
        return (logits - targets).square().sum(-1)
    if task.kind == "single_label":
        log_teacher, log_student = (targets / T).log_softmax(-1), (logits / T).log_softmax(-1)
        divergence: Tensor = log_teacher.exp() * (log_teacher - log_student)
        return divergence.sum(-1) * T**2
    yes, no = (targets / T).sigmoid(), (-targets / T).sigmoid()
    divergence = yes * (F.logsigmoid(targets / T) - F.logsigmoid(logits / T))
    divergence = divergence + no * (F.logsigmoid(-targets / T) - F.logsigmoid(-logits / T))
    return divergence.mean(-1) * T**2


def state_losses(state: Tensor, target: Tensor, kind: HiddenLoss, variance: float) -> Tensor:
    """How far vectors [n, D] are from the teacher's: [n].

    ``mse``: the mean square of the difference, in units of the teacher's ``variance``, so that 1 is as bad as
    its mean vector and layers count alike, however large their numbers. ``cosine``: 1 − cos.
    """
    state, target = state.float(), target.float()
    if kind == "cosine":
        return 1.0 - F.cosine_similarity(state, target, dim=-1)
    return (state - target).square().mean(-1) / variance


def relation_losses(student: Tensor, teacher: Tensor, packing: Packing, num_heads: int) -> Tensor:
    """How far the relations between a row's tokens are from the teacher's: [B], mean over tokens and heads.

    ``student`` [N, A·d] and ``teacher`` [N, A·d'] are the queries (or keys, or values) of all heads side by
    side, cut anew into A = ``num_heads`` relation heads, whatever heads they came from. A relation is
    softmax(x·xᵀ/√d), and the loss the KL divergence of the student's from the teacher's (Wang et al. 2021,
    MiniLMv2, section 3).
    """
    totals = torch.zeros(packing.num_rows, device=student.device)
    for (one, other), rows in _rectangles(packing, student.float(), teacher.float()):
        apart = rows[:, None, :, None] != rows[:, None, None, :]  # [blocks, 1, T, T]
        log_student = _log_relations(one, num_heads, apart)
        log_teacher = _log_relations(other, num_heads, apart)
        divergence = (log_teacher.exp() * (log_teacher - log_student)).sum(-1).mean(1)  # [blocks, T]
        exists = rows >= 0
        totals = totals.index_add(0, rows[exists], divergence[exists])
    return totals / packing.lengths.clamp(min=1)


def _log_relations(x: Tensor, num_heads: int, apart: Tensor) -> Tensor:
    """x [blocks, T, A·d] → log softmax(x·xᵀ/√d) [blocks, A, T, T], within rows."""
    heads = x.unflatten(-1, (num_heads, -1)).transpose(1, 2)  # [blocks, A, T, d]
    scores = heads @ heads.transpose(-1, -2) / heads.shape[-1] ** 0.5
    log_relations: Tensor = scores.masked_fill(apart, APART).log_softmax(-1)
    return log_relations


def _rectangles(packing: Packing, *packed: Tensor) -> Iterator[tuple[list[Tensor], Tensor]]:
    """Each of ``packed`` [N, W] as rectangles [blocks, T, W], with the row of each place, −1 for none.

    On a CPU rows share blocks, as in attention; elsewhere each row is a line of one padded rectangle.
    """
    device = packed[0].device
    if device.type != "cpu":
        rows = packing.pad(packing.rows + 1) - 1
        yield [packing.pad(one) for one in packed], rows
        return
    blocks = packing.blocks
    spread = [blocks.spread(one) for one in packed]  # [S, W]
    for part in blocks.parts:
        rectangles = [one[part.start : part.stop].unflatten(0, (-1, part.width)) for one in spread]
        if part.rows is not None:
            yield rectangles, part.rows
        else:  # every block is a whole row
            first = part.start // part.width
            rows = torch.arange(first, first + part.num_blocks)
            yield rectangles, rows[:, None].expand(-1, part.width)


class Distillation:
    """The objective of a student: see ``encoder.objective.Objective``.

    ``seen`` is what ``compress.watching.watched`` keeps of the student's passes, ``targets`` what the teacher
    made of all training rows. The first ``num_labelled`` of these have labels that count; the others are
    there for the teacher's answers. ``first_only``: the student's last state is that of first tokens. Where
    widths differ, a linear map that is trained with the student stands between its hidden state and the
    teacher's (Jiao et al. 2020, TinyBERT, equation 8).
    """

    def __init__(
        self,
        config: DistillationConfig,
        task: Task,
        seen: Watched,
        targets: Targets,
        labels: NDArray[np.generic],
        *,
        num_labelled: int,
        widths: tuple[int, int],
        first_only: bool = True,
        seed: int = 0,
        device: str = "cpu",
    ) -> None:
        self.config, self.task, self.seen, self.targets = config, task, seen, targets
        self.num_labelled, self.first_only, self.device = num_labelled, first_only, device
        self._weights = balanced_weights(task, labels[:num_labelled]) if config.balanced else None
        self.projections: dict[int, Linear] = {}
        if widths[0] != widths[1]:
            generator = torch.Generator().manual_seed(seed)
            for number in config.pairs:
                self.projections[number] = _draw_projection(*widths, generator).to(device)

    @property
    def identity(self) -> str:
        """See ``Objective``; the teacher's answers stand for the teacher."""
        digest = hashlib.sha256(self.targets.logits.numpy().tobytes()).hexdigest()
        return json.dumps([self.config.model_dump(mode="json"), self.num_labelled, digest], sort_keys=True)

    def parameters(self) -> dict[str, nn.Parameter]:
        """The projections between widths."""
        return {
            f"projections.{number}.{name}": parameter
            for number, projection in self.projections.items()
            for name, parameter in projection.named_parameters()
        }

    def prepare(self, batch: Batch, index: NDArray[np.int64], epoch: int) -> Batch:
        """The rows as they are."""
        return batch

    def weight(self, index: NDArray[np.int64], epoch: int) -> float:
        """The number of rows."""
        return float(len(index))

    def summed_loss(self, logits: Tensor, batch: Batch, index: NDArray[np.int64]) -> Tensor:
        """See ``Objective``: the losses with a weight, each times its weight."""
        weights, total = self.config.weights, logits.new_zeros((), dtype=torch.float32)
        if weights.soft > 0:
            targets = self.targets.logits[torch.from_numpy(index)].to(logits.device)
            answers = soft_losses(self.task, logits, targets, self.config.temperature)
            total = total + weights.soft * answers.sum()
        if weights.hard > 0:
            total = total + weights.hard * self._hard_loss(logits, batch, index)
        if weights.hidden > 0 and self.config.states:
            losses = [self._state_loss(number, batch, index) for number in self.config.states]
            total = total + weights.hidden * torch.stack(losses).mean()
        if weights.embeddings > 0:
            total = total + weights.embeddings * self._state_loss(0, batch, index)
        if weights.relations > 0:
            total = total + weights.relations * self._relation_loss(batch, index)
        return total

    def _hard_loss(self, logits: Tensor, batch: Batch, index: NDArray[np.int64]) -> Tensor:
        assert batch.labels is not None
        labelled = torch.from_numpy(np.flatnonzero(index < self.num_labelled)).to(logits.device)
        return summed_loss(
            self.task, logits[labelled], batch.labels[labelled],
            weights=None if self._weights is None else self._weights.to(logits.device),
            label_smoothing=self.config.label_smoothing,
        )  # fmt: skip

    def _state_loss(self, number: int, batch: Batch, index: NDArray[np.int64]) -> Tensor:
        """Of one of the student's hidden states, summed over rows."""
        other = self.config.pairs[number]
        known = self.targets.hidden[other]
        target = known.read_rows(index).to(batch.input_ids.device)
        lengths = torch.from_numpy(known.lengths[index]).to(target.device)
        state, packing = self.seen.hidden[number], batch.packing
        # The last is that of the first tokens, unless the classifier looks at all: of either model.
        is_first = self.first_only and number == max(self.config.states, default=0) > 0
        if is_first:
            starts = lengths.cumsum(0) - lengths
            target, lengths = target[starts[lengths > 0]], lengths.clamp(max=1)
        rows = torch.arange(len(index), device=target.device).repeat_interleave(lengths)
        if is_first:
            state = state[rows]
        elif not torch.equal(lengths, packing.lengths[: len(index)]):
            state = packing.first(state)[rows]
        state = state[: len(target)].float()  # what fills the batch up comes last
        if number in self.projections:
            state = self.projections[number](state)
        losses = state_losses(state, target, self.config.hidden_loss, self.targets.variances[other])
        return (losses / lengths[rows]).sum()

    def _relation_loss(self, batch: Batch, index: NDArray[np.int64]) -> Tensor:
        """Of queries, keys and values, the mean of the three, summed over rows."""
        student_layer, teacher_layer = self.config.layers
        student = self.seen.projections[student_layer]
        teacher = self.targets.projections[teacher_layer].read_rows(index).to(student.device)
        filling = len(student) - len(teacher)
        pairs = zip(student.chunk(3, 1), F.pad(teacher, (0, 0, 0, filling)).chunk(3, 1), strict=True)
        heads = self.config.num_relation_heads
        losses = [relation_losses(one, other, batch.packing, heads) for one, other in pairs]
        return torch.stack(losses)[:, : len(index)].mean(0).sum()


def choose_relation_heads(student: int, teacher: int, wanted: int | None = None) -> int | None:
    """How many relation heads two widths can be cut into; ``None`` where it cannot be ``wanted``."""
    common = [
        number for number in range(1, min(student, teacher) + 1) if student % number == teacher % number == 0
    ]
    if wanted is not None:
        return wanted if wanted in common else None
    most = max(1, teacher // RELATION_HEAD_SIZE)
    return max((number for number in common if number <= most), default=None)


def attention_width(config: EncoderConfig, layer: int) -> int:
    """H·K of a layer: how wide its queries are, all heads together."""
    return config.layers[layer].num_attention_heads * config.layers[layer].head_size


def _draw_projection(width: int, teacher_width: int, generator: torch.Generator) -> Linear:
    """A linear map that keeps the size of what goes through it."""
    projection = Linear(width, teacher_width)
    with torch.no_grad():
        projection.weight.normal_(0.0, width**-0.5, generator=generator)
        projection.bias.zero_()
    return projection
