"""Claims about training towards something else than labels."""

import numpy as np
import torch

from encoder.objective import Supervised
from encoder.training import train_
from encoder.training_config import TrainingConfig

LENGTHS = [3, 9, 5, 5, 12, 2, 7, 4, 6, 8] * 2


class Recorded:
    """Labels as usual, with a parameter of its own; remembers which rows came."""

    identity = "recorded"

    def __init__(self, task, rows):
        self.inner = Supervised(task, rows.labels)
        self.rows, self.seen = rows, []
        self.own = torch.nn.Parameter(torch.ones(1))

    def parameters(self):
        return {"own": self.own}

    def prepare(self, batch, index, epoch):
        return batch

    def weight(self, index, epoch):
        return self.inner.weight(index, epoch)

    def summed_loss(self, logits, batch, index):
        lengths = batch.packing.lengths.numpy()[: len(index)]
        assert np.array_equal(lengths, self.rows.lengths[index])
        assert np.array_equal(batch.labels.numpy(), self.rows.labels[index])
        self.seen.extend(index.tolist())
        return self.inner.summed_loss(logits, batch, index) + (self.own**2).sum()


def config(**changes):
    return TrainingConfig.model_validate({"num_epochs": 2, "batch_size": 8, "learning_rate": 0.01} | changes)


def test_an_objective_is_told_which_rows_are_in_a_batch_and_its_own_parameters_train(
    make_classifier, make_rows, tmp_path
):
    rows, model = make_rows(LENGTHS), make_classifier()
    objective = Recorded(model.task, rows)
    train_(model, rows, None, config(accumulation_steps=2), work_folder=tmp_path, objective=objective)
    assert sorted(objective.seen) == sorted(2 * list(range(len(rows))))
    assert 0 < objective.own.item() < 1


def test_labels_are_what_is_learnt_where_nothing_else_is_said(make_classifier, make_rows, tmp_path):
    results = []
    for number in range(2):
        rows, model = make_rows(LENGTHS), make_classifier()
        objective = Supervised(model.task, rows.labels, balanced=True) if number else None
        train_(
            model, rows, None, config(class_weights="balanced"),
            work_folder=tmp_path / str(number), objective=objective,
        )  # fmt: skip
        results.append({name: p.detach().clone() for name, p in model.named_parameters()})
    assert all(torch.equal(results[0][name], results[1][name]) for name in results[0])
