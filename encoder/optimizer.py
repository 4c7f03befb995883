"""AdamW with per-layer learning rates, and the schedule of the rate."""

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import torch
from torch import Tensor, nn

Schedule = Literal["linear", "cosine", "constant"]


def usual_learning_rate(hidden_size: int) -> float:
    """A learning rate that works without tuning for an encoder this wide, with a layer decay near 0.9.

    2e-4 at 384, and inversely to the width, as ELECTRA's fine-tuning has it (Clark et al. 2020, appendix B:
    3e-4, 1e-4 and 5e-5 for hidden sizes 256, 768 and 1024, with layer decay).
    """
    return 2e-4 * 384 / hidden_size


def usual_pretraining_rate(hidden_size: int) -> float:
    """A learning rate for pretraining an encoder this wide, in batches of some thousand tokens.

    5e-4 at 256 and inversely to the width, never above 1e-3; ELECTRA has 5e-4 at 256 and 2e-4 at 768 (Clark
    et al. 2020, appendix A).
    """
    return min(1e-3, 5e-4 * 256 / hidden_size)


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
    """Groups for AdamW, a layer or a part of one each. Biases, LayerNorms and the word table are not decayed.

    The word table: decay would shrink the rows of words that the data hardly uses towards zero, though
    nothing in the data asks for it (and see ``encoder.compact_vocabulary``).

    With ``layer_decay`` ξ < 1 the rate of depth d is ``learning_rate · ξ^(L+1−d)`` (Howard and Ruder 2018,
    discriminative fine-tuning; Sun et al. 2019 for BERT), the classifier keeping the full rate.
    """
    groups: dict[tuple[int, float], list[nn.Parameter]] = {}
    for name, parameter in parameters.items():
        decay = 0.0 if parameter.dim() < 2 or name.endswith("embeddings.word.weight") else weight_decay
        groups.setdefault((parameter_depth(name, num_layers), decay), []).append(parameter)
    return [
        {
            "params": members,
            "lr": learning_rate * layer_decay ** (num_layers + 1 - depth),
            "weight_decay": decay,
        }
        for (depth, decay), members in groups.items()
    ]


class Optimizer:
    """AdamW (Loshchilov and Hutter 2019) with the whole gradient shortened to ``max_grad_norm``.

    ``groups`` as of torch; ``rounded`` the copies that get the gradients of some of their parameters
    (``encoder.rounded_weights``). A group is done before the next is begun, so that a gradient is widened and
    a weight rounded while they are in the processor's cache; ``fused``: in torch's fused form, which scales
    the gradient in passing.
    """

    def __init__(
        self,
        groups: list[dict[str, Any]],
        *,
        max_grad_norm: float = math.inf,
        rounded: Mapping[Tensor, Tensor] | None = None,
        fused: bool = True,
    ) -> None:
        self._parts = [torch.optim.AdamW([group], fused=fused) for group in groups]
        self._max_grad_norm, self._rounded, self._fused = max_grad_norm, rounded or {}, fused
        largest = max(self._rounded, key=Tensor.numel, default=torch.empty(0))
        self._wide = torch.empty(largest.numel(), dtype=torch.float32, device=largest.device)

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        """The groups, whose values may be changed."""
        return [group for part in self._parts for group in part.param_groups]

    def zero_grad(self) -> None:
        """Drop all gradients."""
        for tensor in self._tensors():
            tensor.grad = None

    def gradients(self) -> list[Tensor]:
        """The gradients of all parameters, to be changed in place; zeros where there is none."""
        parameters = [parameter for group in self.param_groups for parameter in group["params"]]
        for parameter in parameters:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        return [parameter.grad for parameter in parameters]

    def step(self) -> None:
        """One update of all parameters that have a gradient; the gradients are gone afterwards."""
        norms = [
            torch.linalg.vector_norm(self._widen(tensor.grad))
            for tensor in self._tensors()
            if tensor.grad is not None
        ]
        # What the gradient is divided by, as torch.nn.utils.clip_grad_norm_ has it.
        divisor = ((torch.linalg.vector_norm(torch.stack(norms)) + 1e-6) / self._max_grad_norm).clamp_(min=1)
        for part in self._parts:
            (group,) = part.param_groups
            self._update_(part, group["params"], divisor)

    def _update_(self, part: torch.optim.AdamW, parameters: list[nn.Parameter], divisor: Tensor) -> None:
        for parameter in parameters:
            rounded = self._rounded.get(parameter)
            if rounded is not None and rounded.grad is not None:
                assert parameter.grad is None, "a weight was used beside its rounded copy"
                parameter.grad, rounded.grad = rounded.grad.float(), None
            if not self._fused and parameter.grad is not None:
                parameter.grad /= divisor
        if self._fused:
            part.grad_scale = divisor  # type: ignore[attr-defined] # as torch.amp.GradScaler hands it over
        part.step()
        with torch.no_grad():
            for parameter in parameters:
                parameter.grad = None
                self._round_(parameter)

    def _widen(self, grad: Tensor) -> Tensor:
        """``grad`` in float32, until the next one is asked for."""
        if grad.dtype == torch.float32:
            return grad
        return self._wide[: grad.numel()].view_as(grad).copy_(grad)

    def _round_(self, parameter: Tensor) -> None:
        rounded = self._rounded.get(parameter)
        if rounded is not None:
            rounded.copy_(parameter)

    def _tensors(self) -> Iterable[Tensor]:
        """Whatever may have a gradient."""
        for group in self.param_groups:
            yield from group["params"]
        yield from self._rounded.values()

    def state_dict(self) -> dict[str, Any]:
        """What ``load_state_dict`` needs to go on from here."""
        return {"parts": [part.state_dict() for part in self._parts]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from there; the parameters have to be as they were then."""
        for part, its_state in zip(self._parts, state["parts"], strict=True):
            part.load_state_dict(its_state)
        with torch.no_grad():
            for parameter in self._rounded:
                self._round_(parameter)


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
