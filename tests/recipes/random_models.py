"""Classifiers with random weights, in folders."""

import torch

from compress.removal import keep_units
from encoder.checkpoint import load_classifier, save_classifier
from encoder.model_folder import read_tokenizer


def make_model(tiny_model, folder, task, *, pruned=False):
    """A random classifier for ``task``, with more than the usual scale, so that its answers differ."""
    model = load_classifier(tiny_model, task=task, seed=1)
    with torch.no_grad():
        model.classifier.output.weight.mul_(5)
        model.classifier.output.bias.add_(0.3)
    if pruned:
        model = keep_units(
            keep_units(model, "heads", [[0, 3], [], [2]]), "neurons", [[1, 5, 9], range(64), []]
        )
    save_classifier(model, read_tokenizer(tiny_model), folder)
    return model.eval()
