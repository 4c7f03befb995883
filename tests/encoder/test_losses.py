import numpy as np
import torch

from encoder.losses import balanced_weights, loss_weight, summed_loss
from encoder.task import Task

SINGLE = Task(kind="single_label", labels=("a", "b", "c"))
MULTI = Task(kind="multi_label", labels=("a", "b"))


def test_cross_entropy_equals_the_formula_with_smoothing_and_weights() -> None:
    logits, labels = torch.randn(4, 3), torch.tensor([0, 2, 2, 1])
    weights = torch.tensor([0.5, 1.0, 2.0])
    log_p = logits.log_softmax(-1)
    target = torch.nn.functional.one_hot(labels, 3) * 0.9 + 0.1 / 3
    expected = -(weights * target * log_p).sum()
    loss = summed_loss(SINGLE, logits, labels, weights=weights, label_smoothing=0.1)
    assert torch.allclose(loss, expected, atol=1e-5)


def test_multi_label_is_a_sigmoid_per_label_not_a_softmax() -> None:
    logits, labels = torch.randn(4, 2, requires_grad=True), torch.randint(0, 2, (4, 2)).float()
    loss = summed_loss(MULTI, logits, labels)
    loss.backward()
    assert logits.grad is not None
    assert torch.allclose(logits.grad, (logits.detach().sigmoid() - labels) / 2, atol=1e-6)


def test_regression_is_the_squared_error() -> None:
    logits, labels = torch.tensor([[1.0], [3.0]]), torch.tensor([0.0, 1.0])
    assert float(summed_loss(Task(kind="regression"), logits, labels)) == 5.0


def test_balanced_weights_give_each_class_the_same_total() -> None:
    labels = np.array([0, 0, 0, 1, 2, 2])
    weights = balanced_weights(SINGLE, labels)
    assert weights is not None
    assert torch.allclose(weights * torch.tensor([3.0, 1.0, 2.0]), torch.full((3,), 2.0))
    assert loss_weight(SINGLE, labels, weights) == 6.0


def test_a_class_without_rows_keeps_a_finite_weight() -> None:
    weights = balanced_weights(SINGLE, np.array([0, 0, 1]))
    assert weights is not None and weights[2] == 1.0
    multi = balanced_weights(MULTI, np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]], dtype=np.float32))
    assert multi is not None and multi.tolist() == [2.0, 1.0]


def test_batches_add_up_to_the_whole() -> None:
    logits, labels = torch.randn(7, 3), torch.randint(0, 3, (7,))
    weights = torch.tensor([0.3, 1.0, 2.0])
    whole = summed_loss(SINGLE, logits, labels, weights=weights)
    parts = [summed_loss(SINGLE, logits[i:j], labels[i:j], weights=weights) for i, j in ((0, 2), (2, 7))]
    assert torch.allclose(sum(parts), whole, atol=1e-5)
    expected = torch.nn.functional.cross_entropy(logits, labels, weight=weights)
    assert torch.allclose(whole / loss_weight(SINGLE, labels.numpy(), weights), expected, atol=1e-6)
