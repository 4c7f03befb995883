"""The encoder and the classifier on top of it, put together from their bricks."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from encoder.attention import SelfAttention
from encoder.batches import Batch
from encoder.config import ClassifierConfig, EncoderConfig, LayerShape
from encoder.dropout import Dropout
from encoder.embeddings import Embeddings, sinusoidal_positions
from encoder.engine import ALL_ON, Engine
from encoder.feedforward import FeedForward
from encoder.linear import Linear
from encoder.packing import Packing
from encoder.task import Task

CLASSIFIER_ACTIVATIONS = {"tanh": torch.tanh, "relu": torch.relu, "gelu": torch.nn.functional.gelu}


@dataclass(frozen=True)
class EncoderOutput:
    """What an encoder returns.

    ``last_hidden_state`` [N, D]. ``hidden_states``, if asked for: L+1 of [N, D], the embeddings first.
    ``attentions``, if asked for: L of [B, H, T, T], H as each layer has it.
    """

    last_hidden_state: Tensor
    hidden_states: tuple[Tensor, ...] = ()
    attentions: tuple[Tensor, ...] = ()


class EncoderLayer(nn.Module):
    """Self-attention and feed-forward, each with a residual connection and a LayerNorm.

    Post-norm: LayerNorm(x + f(x)), as in the original Transformer and BERT. Pre-norm: x + f(LayerNorm(x)).
    """

    def __init__(self, config: EncoderConfig, shape: LayerShape) -> None:
        super().__init__()
        D, eps = config.hidden_size, config.layer_norm_eps
        self.pre_norm = config.norm == "pre"
        self.attention = SelfAttention(D, shape, config.attention_dropout)
        self.attention_norm = nn.LayerNorm(D, eps=eps)
        self.feed_forward = FeedForward(D, shape.intermediate_size, config.activation)
        self.feed_forward_norm = nn.LayerNorm(D, eps=eps)
        self.dropout = Dropout(config.hidden_dropout)

    def forward(
        self, x: Tensor, packing: Packing, *, need_weights: bool = False, first_only: bool = False
    ) -> tuple[Tensor, Tensor | None]:
        """x [N, D] → ([N, D], attention weights [B, H, T, T] if ``need_weights``).

        With ``first_only`` the result is that of each row's first token, [B, D]; no other is computed.
        """
        residual = packing.first(x) if first_only else x
        normed = self.attention_norm(x) if self.pre_norm else x
        mixed, weights = self.attention(normed, packing, need_weights=need_weights, first_only=first_only)
        x = residual + self.dropout(mixed)
        if self.pre_norm:
            return x + self.dropout(self.feed_forward(self.feed_forward_norm(x))), weights
        x = self.attention_norm(x)
        return self.feed_forward_norm(x + self.dropout(self.feed_forward(x))), weights


class Encoder(nn.Module):
    """Embeddings and L layers; a pre-norm encoder ends with one more LayerNorm."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.config = config
        self.embeddings = Embeddings(config)
        self.layers = nn.ModuleList(EncoderLayer(config, shape) for shape in config.layers)
        self.engine = ALL_ON
        pre_norm = config.norm == "pre"
        self.final_norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps) if pre_norm else None

    def embed(self, batch: Batch) -> Tensor:
        """What the layers start from, [N, D]: the embeddings, or what is computed already."""
        if batch.computed is not None:
            return batch.computed.hidden
        x: Tensor = self.embeddings(batch.input_ids, batch.token_type_ids, batch.packing.positions)
        return x

    def forward(
        self, batch: Batch, *, output_hidden_states: bool = False, output_attentions: bool = False
    ) -> EncoderOutput:
        """Encode the N tokens of a batch; see ``EncoderOutput`` for the shapes.

        A batch that holds what the bottom layers computed goes on from there, and has the hidden states and
        attentions of the other layers only.
        """
        hidden_states, attentions = [], []
        for x, weights in self._steps(batch, need_weights=output_attentions):
            last = x
            if output_hidden_states:
                hidden_states.append(x)
            if weights is not None:
                attentions.append(weights)
        return EncoderOutput(last, tuple(hidden_states), tuple(attentions))

    def states(self, batch: Batch) -> Iterator[Tensor]:
        """The hidden states one by one, each [N, D], the embeddings first.

        A layer is computed when its state is asked for, so who stops early has not paid for the others.
        """
        return (x for x, _ in self._steps(batch, need_weights=False))

    def _steps(self, batch: Batch, *, need_weights: bool) -> Iterator[tuple[Tensor, Tensor | None]]:
        """The embeddings, then what each layer made: the state and, if asked for, the attention weights."""
        x = self.embed(batch)  # [N, D]
        layers = self._layers_left(batch)
        if not layers and self.final_norm is not None:
            x = self.final_norm(x)
        yield x, None
        for layer in layers:
            x, weights = layer(x, batch.packing, need_weights=need_weights)
            if layer is layers[-1] and self.final_norm is not None:
                x = self.final_norm(x)
            yield x, weights

    def first(self, batch: Batch) -> Tensor:
        """The last hidden state of each row's first token, [B, D]; zeros for a row without tokens.

        The last layer computes no other token, which saves most of it.
        """
        packing = batch.packing
        x = self.embed(batch)  # [N, D]
        layers = self._layers_left(batch)
        last = layers[-1] if layers and self.engine.first_token_only else None
        for layer in layers:
            x, _ = layer(x, packing, first_only=layer is last)
        if last is None:
            x = packing.first(x)  # [B, D]
        if self.final_norm is not None:
            x = self.final_norm(x)
        return torch.where((packing.lengths > 0)[:, None], x, torch.zeros_like(x))

    def _layers_left(self, batch: Batch) -> list[nn.Module]:
        return list(self.layers)[0 if batch.computed is None else batch.computed.depth :]


class ClassifierLayers(nn.Module):
    """[dropout] → linear D×D → activation → dropout → linear D×C, on the first token of each row.

    BERT calls the first linear its pooler, DistilBERT its pre-classifier.
    """

    def __init__(self, hidden_size: int, num_outputs: int, config: ClassifierConfig) -> None:
        super().__init__()
        self.input_dropout = Dropout(config.dropout if config.input_dropout else 0.0)
        self.dense = Linear(hidden_size, hidden_size)
        self.activation = CLASSIFIER_ACTIVATIONS[config.activation]
        self.dropout = Dropout(config.dropout)
        self.output = Linear(hidden_size, num_outputs)

    def forward(self, pooled: Tensor) -> Tensor:
        """pooled [B, D] → logits [B, C]."""
        x = self.activation(self.dense(self.input_dropout(pooled)))
        logits: Tensor = self.output(self.dropout(x))
        return logits


class Classifier(nn.Module):
    """An encoder with a classifier for one task: a ``Batch`` in, logits [B, C] out."""

    def __init__(self, config: EncoderConfig, task: Task) -> None:
        super().__init__()
        self.config = config
        self.task = task
        self.encoder = Encoder(config)
        self.classifier = ClassifierLayers(config.hidden_size, task.num_outputs, config.classifier)
        self.new_parameters: tuple[str, ...] = ()  # names of what did not come from a checkpoint

    def forward(self, batch: Batch) -> Tensor:
        """Logits float [B, C]; regression has C = 1."""
        first = self.encoder.first(batch)
        logits: Tensor = self.classifier(first[: len(first) - batch.num_filling_rows])
        return logits


def use_(model: nn.Module, engine: Engine) -> None:
    """Let ``model`` compute with the pieces of ``engine``."""
    for module in model.modules():
        if isinstance(module, Encoder | SelfAttention | Dropout):
            module.engine = engine


def start_at_base_rates_(model: Classifier, labels: NDArray[np.generic]) -> None:
    """Set the output bias of ``model`` in place to the best answer that does not look at the text.

    ``labels`` as in ``TokenizedRows``. Regression: their mean. Multi-label: the log-odds of each label's
    share of the rows, as Lin et al. 2017 (focal loss, section 3.3) start rare classes; one row is added with
    and one without each label, so that all are finite. From 0 such a bias takes an epoch to get there.
    Single-label outputs stay at 0: a softmax has no rare "yes" to find.
    """
    answers = labels.astype(np.float64)
    if model.task.kind == "regression":
        start = answers.mean(keepdims=True)
    elif model.task.kind == "multi_label":
        positives = answers.sum(0) + 1
        start = np.log(positives / (len(answers) + 2 - positives))
    else:
        return
    with torch.no_grad():
        model.classifier.output.bias.copy_(torch.from_numpy(start))


def initialise_(module: nn.Module, config: EncoderConfig, seed: int) -> None:
    """Draw all parameters of ``module`` in place as BERT does: weights N(0, initializer_range), biases 0.

    LayerNorms start as the identity; a sinusoidal position table is filled, not drawn.
    """
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if name.endswith("norm.weight"):
                parameter.fill_(1.0)
            elif parameter.dim() < 2:
                parameter.zero_()
            elif name.endswith("position.weight") and config.position_embedding == "sinusoidal":
                parameter.copy_(sinusoidal_positions(*parameter.shape))
            else:
                parameter.normal_(0.0, config.initializer_range, generator=generator)
