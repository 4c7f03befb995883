"""The encoder and the classifier on top of it, put together from their bricks."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from encoder.attention import SelfAttention
from encoder.batches import Batch
from encoder.config import EncoderConfig
from encoder.dropout import Dropout
from encoder.embeddings import Embeddings, sinusoidal_positions
from encoder.engine import ALL_ON, Engine
from encoder.layer import EncoderLayer, Wanted
from encoder.linear import Linear
from encoder.pooling import pool
from encoder.residual import Residual, Stream, norm_eps
from encoder.task import Task

CLASSIFIER_ACTIVATIONS = {"tanh": torch.tanh, "relu": torch.relu, "gelu": F.gelu, "silu": F.silu}


@dataclass(frozen=True)
class EncoderOutput:
    """What an encoder returns.

    ``last_hidden_state`` [N, D]. ``hidden_states``, if asked for: L+1 of [N, D], the embeddings first; what
    the next layer reads, the last after its norm. ``attentions``, if asked for: L of [B, H, T, T], H as each
    layer has it. ``residual_weights``, if asked for: 2·L+1 of float32 [N, sources], what each sublayer takes
    of each source and the mix at the end; all ones where the residual is a sum.
    """

    last_hidden_state: Tensor
    hidden_states: tuple[Tensor, ...] = ()
    attentions: tuple[Tensor, ...] = ()
    residual_weights: tuple[Tensor, ...] = ()


class Encoder(nn.Module):
    """Embeddings and L layers; a pre-norm encoder ends with one more LayerNorm."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.config = config
        self.embeddings = Embeddings(config)
        self.layers = nn.ModuleList(EncoderLayer(config, number) for number in range(len(config.layers)))
        self.engine = ALL_ON
        last = 2 * config.num_hidden_layers
        self.final_residual = Residual(config, last)
        self.final_norm = None
        if config.norm == "pre":
            eps = norm_eps(config, last)
            self.final_norm = nn.LayerNorm(config.hidden_size, eps=eps, bias=config.norm_bias)

    def embed(self, batch: Batch) -> Stream:
        """What the layers start from: the embeddings, or what is computed already."""
        if batch.computed is not None:
            return Stream.unpacked(batch.computed.hidden, self.config.hidden_size)
        return Stream((self.embeddings(batch.input_ids, batch.token_type_ids, batch.packing.positions),))

    def read(self, stream: Stream, depth: int) -> Tensor:
        """Hidden state number ``depth`` [N, D]: what the layer above reads, above the last one the result."""
        if depth < len(self.layers):
            layer: Any = self.layers[depth]
            x: Tensor = layer.attention_residual(stream)
            return x
        x = self.final_residual(stream)
        return x if self.final_norm is None else self.final_norm(x)

    def forward(
        self,
        batch: Batch,
        *,
        output_hidden_states: bool = False,
        output_attentions: bool = False,
        output_residual_weights: bool = False,
    ) -> EncoderOutput:
        """Encode the N tokens of a batch; see ``EncoderOutput`` for the shapes.

        A batch that holds what the bottom layers computed goes on from there, and has the hidden states and
        attentions of the other layers only.
        """
        wanted = Wanted(attention=output_attentions, residual=output_residual_weights)
        states = []
        for depth, stream in self._streams(batch, wanted):
            if output_hidden_states or depth == len(self.layers):
                states.append(self.read(stream, depth))
        wanted.note(self.final_residual, stream)
        return EncoderOutput(
            states[-1],
            tuple(states) if output_hidden_states else (),
            tuple(wanted.attentions),
            tuple(wanted.residual_weights),
        )

    def states(self, batch: Batch) -> Iterator[Tensor]:
        """The hidden states one by one, each [N, D], the embeddings first.

        A layer is computed when its state is asked for, so who stops early has not paid for the others.
        """
        return (self.read(stream, depth) for depth, stream in self._streams(batch))

    def _streams(self, batch: Batch, wanted: Wanted | None = None) -> Iterator[tuple[int, Stream]]:
        """The depth and the stream that it starts from, then those after each layer that is left."""
        depth = 0 if batch.computed is None else batch.computed.depth
        stream = self.embed(batch)
        yield depth, stream
        for number, layer in enumerate(list(self.layers)[depth:], start=depth + 1):
            stream = layer(stream, batch.packing, wanted=wanted)
            yield number, stream

    def first(self, batch: Batch) -> Tensor:
        """The last hidden state of each row's first token, [B, D]; zeros for a row without tokens.

        The last layer computes no other token, which saves most of it.
        """
        packing = batch.packing
        stream = self.embed(batch)
        layers = list(self.layers)[0 if batch.computed is None else batch.computed.depth :]
        last = layers[-1] if layers and self.engine.first_token_only else None
        for layer in layers:
            stream = layer(stream, packing, first_only=layer is last)
        if last is None:
            stream = stream.map(packing.first)
        x = self.read(stream, len(self.layers))  # [B, D]
        return torch.where((packing.lengths > 0)[:, None], x, torch.zeros_like(x))


class ClassifierLayers(nn.Module):
    """[dropout] → linear D×D → activation → [LayerNorm] → dropout → linear D×C, on a vector of each row.

    BERT calls the first linear its pooler, DistilBERT its pre-classifier, ModernBERT all but the last its
    prediction head.
    """

    def __init__(self, encoder: EncoderConfig, num_outputs: int) -> None:
        super().__init__()
        config, hidden_size = encoder.classifier, encoder.hidden_size
        self.input_dropout = Dropout(config.dropout if config.input_dropout else 0.0)
        self.dense = Linear(hidden_size, hidden_size, bias=config.bias)
        self.activation = CLASSIFIER_ACTIVATIONS[config.activation]
        self.norm = None
        if config.norm:
            self.norm = nn.LayerNorm(hidden_size, eps=encoder.layer_norm_eps, bias=encoder.norm_bias)
        self.dropout = Dropout(config.dropout)
        self.output = Linear(hidden_size, num_outputs)

    def forward(self, pooled: Tensor) -> Tensor:
        """pooled [B, D] → logits [B, C]."""
        x = self.activation(self.dense(self.input_dropout(pooled)))
        x = x if self.norm is None else self.norm(x)
        logits: Tensor = self.output(self.dropout(x))
        return logits


class Classifier(nn.Module):
    """An encoder with a classifier for one task: a ``Batch`` in, logits [B, C] out."""

    def __init__(self, config: EncoderConfig, task: Task) -> None:
        super().__init__()
        self.config = config
        self.task = task
        self.encoder = Encoder(config)
        self.classifier = ClassifierLayers(config, task.num_outputs)
        self.new_parameters: tuple[str, ...] = ()  # names of what did not come from a checkpoint

    def in_shape(self, config: EncoderConfig) -> "Classifier":
        """A classifier of ``config`` for the same task; its parameters are whatever memory holds."""
        return Classifier(config, self.task)

    def forward(self, batch: Batch) -> Tensor:
        """Logits float [B, C]; regression has C = 1."""
        if self.config.reads_first_token_only:
            pooled = self.encoder.first(batch)  # [B, D]
        else:
            pooled = pool(self.encoder(batch).last_hidden_state, batch.packing, "mean")
        logits: Tensor = self.classifier(pooled[: len(pooled) - batch.num_filling_rows])
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

    LayerNorms start as the identity, queries over depth at 0; a sinusoidal position table is filled.
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
