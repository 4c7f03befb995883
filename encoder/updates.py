"""One update of a training: the gradient of some batches of rows, and what the optimizer makes of it."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from encoder.batches import Batch, filling_multiple
from encoder.engine import Engine
from encoder.freezing import trainable
from encoder.language_model import MaskedLanguageModel
from encoder.model import Classifier
from encoder.objective import Objective
from encoder.optimizer import Optimizer, parameter_groups, rate_factor
from encoder.prediction import autocast
from encoder.processes import Processes
from encoder.rows import TokenizedRows
from encoder.training_config import TrainingConfig

Model = Classifier | MaskedLanguageModel


class Updates:
    """The updates of ``model`` towards ``objective`` on ``rows``: ``per_epoch`` of them, ``number`` in all.

    ``parameters`` are those that train, and the objective's own, by name. ``rounded``: the copies of weights
    that gradients are of, where there are such (``encoder.rounded_weights``).
    """

    def __init__(
        self,
        model: Model,
        rows: TokenizedRows,
        objective: Objective,
        config: TrainingConfig,
        *,
        device: str,
        engine: Engine,
        rounded: Mapping[Tensor, Tensor],
        processes: Processes,
    ) -> None:
        self.rows, self.parameters = rows, trainable(model) | objective.parameters()
        self.per_epoch = math.ceil(len(rows) / (config.batch_size * config.accumulation_steps))
        self.number = self.per_epoch * config.num_epochs
        self._model, self._objective, self._config = model, objective, config
        self._device, self._processes = device, processes
        groups = parameter_groups(
            self.parameters,
            num_layers=model.config.num_hidden_layers,
            learning_rate=config.learning_rate,
            weight_decay=config.weight_decay,
            layer_decay=config.layer_decay,
        )
        self._rates = [group["lr"] for group in groups]
        self.optimizer = Optimizer(
            groups, max_grad_norm=config.max_grad_norm, rounded=rounded, fused=engine.fused_optimizer
        )
        self._multiple_of = filling_multiple(model.config.max_tokens) if engine.filled_batches else 1

    def make(self, group: Sequence[NDArray[np.int64]], epoch: int, step: int) -> Tensor:
        """Make update ``step`` of ``epoch``, both from 0, on the batches of ``group``.

        Returns their summed, detached loss; of several processes each has that of its share of every batch.
        """
        step += epoch * self.per_epoch
        self._set_rates(step)
        total = self._objective.weight(np.concatenate(group), epoch)
        num_rows = sum(map(len, group))
        loss_sum = torch.zeros((), device=self._device)
        self.optimizer.zero_grad()
        if self._processes.count > 1:  # all would drop the same, and only the first one's state is kept
            torch.manual_seed(self._seed_of(step))
        for index in filter(len, map(self._processes.share, group)):
            batch = Batch.from_rows(self.rows.select(index), multiple_of=self._multiple_of)
            batch = self._objective.prepare(batch, index, epoch).to(self._device)
            with autocast(self._device, self._config.precision):
                logits = self._model(batch)
            loss = self._objective.summed_loss(logits, batch, index)
            (loss / total).backward()
            loss_sum += loss.detach() * (num_rows / total)
        if self._processes.count > 1:
            self._processes.add_(self.optimizer.gradients())
        self.optimizer.step()
        return loss_sum

    def _set_rates(self, step: int) -> None:
        factor = rate_factor(
            step,
            num_steps=self.number,
            num_warmup_steps=round(self._config.warmup_ratio * self.number),
            schedule=self._config.schedule,
        )
        for rate, parameter_group in zip(self._rates, self.optimizer.param_groups, strict=True):
            parameter_group["lr"] = rate * factor

    def _seed_of(self, step: int) -> int:
        """What decides the dropout of this process in update ``step`` of all."""
        sequence = np.random.SeedSequence([self._config.seed, step, self._processes.rank])
        return int(sequence.generate_state(1, np.uint32)[0])
