"""Which parameters train and which stay as they are."""

from dataclasses import dataclass
from fnmatch import fnmatchcase

from pydantic import Field
from torch import nn

from encoder.config import Strict
from encoder.errors import ConfigError, did_you_mean
from encoder.model import Classifier
from encoder.wording import counted


class Freezing(Strict):
    """What to freeze; the parts add up.

    ``layers`` N: embeddings and the bottom N layers. ``embeddings``: those alone. ``train_last`` N: all but
    the top N layers and the classifier. ``patterns``: globs on parameter names. ``classifier_only``: all but
    the classifier.
    """

    layers: int = Field(default=0, ge=0)
    embeddings: bool = False
    train_last: int | None = Field(default=None, ge=0)
    patterns: tuple[str, ...] = ()
    classifier_only: bool = False


@dataclass(frozen=True)
class Frozen:
    """The result of freezing: parameter counts, and a sentence that says what is frozen and how."""

    trainable_parameters: int
    total_parameters: int
    description: str


def freeze_(model: Classifier, freezing: Freezing) -> Frozen:
    """Freeze parameters of ``model`` in place; ConfigError if nothing would be left to train.

    Frozen parameters get no gradient and are not in the optimizer (``trainable``); ``training_mode_`` keeps
    dropout off in every part whose parameters are all frozen.
    """
    num_layers = model.config.num_hidden_layers
    bottom = _bottom_layers(freezing, num_layers)
    if freezing.embeddings or bottom > 0 or freezing.classifier_only or freezing.train_last is not None:
        model.encoder.embeddings.requires_grad_(False)
    for layer in model.encoder.layers[:bottom]:
        layer.requires_grad_(False)
    if freezing.classifier_only:
        model.encoder.final_residual.requires_grad_(False)
        if model.encoder.final_norm is not None:
            model.encoder.final_norm.requires_grad_(False)
    _freeze_patterns_(model, freezing.patterns)
    total = sum(p.numel() for p in model.parameters())
    trainable = sum(p.numel() for p in model.parameters() if p.requires_grad)
    if trainable == 0:
        raise ConfigError("every parameter is frozen; nothing is left to train")
    return Frozen(trainable, total, _describe(model, bottom, freezing.patterns))


def _bottom_layers(freezing: Freezing, num_layers: int) -> int:
    problems = []
    if freezing.layers > num_layers:
        problems.append(f"--freeze-layers {freezing.layers}: the model has {counted(num_layers, 'layer')}")
    if freezing.train_last is not None and freezing.train_last > num_layers:
        problems.append(f"--train-last {freezing.train_last}: the model has {counted(num_layers, 'layer')}")
    if freezing.train_last is not None and freezing.layers:
        problems.append("--freeze-layers and --train-last say the same thing from two ends; give one")
    if freezing.train_last is not None and freezing.classifier_only:
        problems.append("--train-classifier-only and --train-last exclude each other; give one")
    if problems:
        raise ConfigError.from_problems(problems)
    if freezing.classifier_only:
        return num_layers
    return freezing.layers if freezing.train_last is None else num_layers - freezing.train_last


def _freeze_patterns_(model: Classifier, patterns: tuple[str, ...]) -> None:
    names = [name for name, _ in model.named_parameters()]
    problems = []
    for pattern in patterns:
        matched = {name for name in names if fnmatchcase(name, pattern)}
        if not matched:
            modules = {name.rpartition(".")[0] for name in names} | set(names)
            problems.append(
                f"--freeze {pattern!r} matches no parameter{did_you_mean(pattern, modules)} "
                f"(names look like {names[0]}, {names[-4]}; * matches any text)"
            )
        for name, parameter in model.named_parameters():
            if name in matched:
                parameter.requires_grad_(False)
    if problems:
        raise ConfigError.from_problems(problems)


def _describe(model: Classifier, bottom: int, patterns: tuple[str, ...]) -> str:
    frozen = []
    if not any(p.requires_grad for p in model.encoder.embeddings.parameters()):
        frozen.append("embeddings")
    if bottom:
        frozen.append(
            f"{'layer 0' if bottom == 1 else f'layers 0–{bottom - 1}'} of {len(model.encoder.layers)}"
        )
    frozen += [f"parameters {pattern}" for pattern in patterns]
    if not frozen:
        return "Nothing is frozen."
    return (
        f"Frozen: {', '.join(frozen)}: unchanged by training, not in the optimizer, and without dropout "
        "in every part that is frozen whole."
    )


def trainable(model: nn.Module) -> dict[str, nn.Parameter]:
    """The parameters that train, by name: what an optimizer may hold."""
    return {name: p for name, p in model.named_parameters() if p.requires_grad}


def training_mode_(module: nn.Module) -> None:
    """Training mode, except (evaluation mode, no dropout) in each part whose parameters are all frozen."""
    module.train()
    _rest_frozen_(module)


def _rest_frozen_(module: nn.Module) -> None:
    parameters = list(module.parameters())
    if parameters and not any(p.requires_grad for p in parameters):
        module.eval()
        return
    for child in module.children():
        _rest_frozen_(child)
