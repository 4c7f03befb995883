"""AdamW with per-layer learning rates, and the schedule of the rate."""

import math
import re
from typing import Any, Literal

import torch
from torch import nn

Schedule = Literal["linear", "cosine", "constant"]


def usual_learning_rate(hidden_size: int) -> float:
    """A learning rate that works without tuning for an encoder this wide, with a layer decay near 0.9.

    2e-4 at 384, and inversely to the width, as ELECTRA's fine-tuning has it (Clark et al. 2020, appendix B:
    3e-4, 1e-4 and 5e-5 for hidden sizes 256, 768 and 1024, with layer decay).
    """
    return 2e-4 * 384 / hidden_size


def parameter_depth(name: str, num_layers: int) -> int:
    """How far a parameter is from the input: 0 for embeddings, i+1 for layer i, L+1 for the classifier."""
    layer = re.search(r"\blayers\.(\d+)\.", name)
    if layer:
        return int(layer.group(1)) + 1
    return 0 if ".embeddings." in f".{name}" else num_layers + 1


def parameter_groups(
    parameters: dict[str, nn.Parameter],
    *,
    num_layers: int,
    learning_rate: float,
    weight_decay: float,
    layer_decay: float,
) -> list[dict[str, Any]]:
    """Groups for AdamW. Biases, LayerNorms and the word table are not decayed.

    The word table: decay would shrink the rows of words that the data hardly uses towards zero, though
    nothing in the data asks for it (and see ``encoder.compact_vocabulary``).

    With ``layer_decay`` ξ < 1 the rate of depth d is ``learning_rate · ξ^(L+1−d)`` (Howard and Ruder 2018,
    discriminative fine-tuning; Sun et al. 2019 for BERT), the classifier keeping the full rate.
    """
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    for name, parameter in parameters.items():
        rate = learning_rate * layer_decay ** (num_layers + 1 - parameter_depth(name, num_layers))
        decay = 0.0 if parameter.dim() < 2 or name.endswith("embeddings.word.weight") else weight_decay
        groups.setdefault((rate, decay), []).append(parameter)
    return [{"params": params, "lr": rate, "weight_decay": decay} for (rate, decay), params in groups.items()]


def make_optimizer(groups: list[dict[str, Any]]) -> torch.optim.AdamW:
    """AdamW (Loshchilov and Hutter 2019) in torch's fused form."""
    return torch.optim.AdamW(groups, fused=True)


def rate_factor(step: int, *, num_steps: int, num_warmup_steps: int, schedule: Schedule) -> float:
    """The factor in [0, 1] on the learning rate of update ``step`` (from 0) of ``num_steps``.

    It rises linearly over the warm-up, then falls to 0 (linear, cosine) or stays (constant). Post-norm
    encoders need the warm-up (Xiong et al. 2020).
    """
    if step < num_warmup_steps:
        return (step + 1) / (num_warmup_steps + 1)
    if schedule == "constant":
        return 1.0
    progress = (step - num_warmup_steps) / max(1, num_steps - num_warmup_steps)
    if schedule == "cosine":
        return 0.5 * (1.0 + math.cos(math.pi * progress))
    return 1.0 - progress
