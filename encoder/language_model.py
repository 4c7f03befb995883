"""A masked language model: an encoder with a head that guesses tokens."""

import math
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from encoder.batches import BATCH_TOKENS, Batch, batches_of_tokens
from encoder.config import EncoderConfig
from encoder.feedforward import ACTIVATIONS
from encoder.linear import Linear
from encoder.masking import MaskedTokens, Masking
from encoder.model import Encoder
from encoder.processes import ALONE, Processes
from encoder.rows import TokenizedRows

# What is hidden of held-out rows: always the same, whatever else is random, so that losses can be compared.
HELD_OUT_SEED = 1 << 32


class LanguageHead(nn.Module):
    """linear D×E → activation → LayerNorm → the word table, transposed, and a bias for each token.

    E is the width of the word table, D but for ELECTRA. The table is the embeddings' own (Press and Wolf
    2017): the head has none, so the two cannot part.
    """

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        D, E = config.hidden_size, config.embedding_size
        self.dense = Linear(D, E, bias=config.classifier.bias)  # ModernBERT has none in either
        self.activation = ACTIVATIONS[config.activation]
        self.norm = nn.LayerNorm(E, eps=config.layer_norm_eps, bias=config.norm_bias)
        self.bias = nn.Parameter(torch.empty(config.vocab_size))

    def forward(self, x: Tensor, table: Tensor) -> Tensor:
        """x [M, D] and the word table [V, E] → logits [M, V]."""
        return F.linear(self.norm(self.activation(self.dense(x))), table, self.bias)


class MaskedLanguageModel(nn.Module):
    """An encoder that guesses the tokens ``batch.masked``: logits [M, V]. No others are computed."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = Encoder(config)
        self.head = LanguageHead(config)
        self.new_parameters: tuple[str, ...] = ()  # names of what did not come from a checkpoint

    def in_shape(self, config: EncoderConfig) -> "MaskedLanguageModel":
        """A language model of ``config``; its parameters are whatever memory holds."""
        return MaskedLanguageModel(config)

    def forward(self, batch: Batch) -> Tensor:
        """Logits float [M, V]."""
        assert batch.masked is not None, "there is nothing to guess"
        hidden = self.encoder(batch).last_hidden_state  # [N, D]
        logits: Tensor = self.head(hidden.index_select(0, batch.masked), self.encoder.embeddings.word.weight)
        return logits


def score_guesses(
    model: MaskedLanguageModel,
    rows: TokenizedRows,
    masking: Masking,
    *,
    device: str = "cpu",
    processes: Processes = ALONE,
) -> dict[str, float]:
    """How well ``model`` guesses hidden tokens of held-out ``rows``; it is left in evaluation mode.

    ``loss`` is the mean cross-entropy in nats a token, ``perplexity`` its exponential, ``accuracy`` the share
    of tokens that are guessed right. Of ``masking`` all but the seed counts. Each process scores its share.
    """
    hidden = MaskedTokens(replace(masking, seed=HELD_OUT_SEED), rows)
    totals = torch.zeros(3, dtype=torch.float64, device=device)  # loss, right, tokens
    model.eval()
    with torch.inference_mode():
        for index in batches_of_tokens(rows.lengths, BATCH_TOKENS)[processes.rank :: processes.count]:
            batch = hidden.prepare(Batch.from_rows(rows.select(index)), index, 0).to(device)
            assert batch.labels is not None
            logits = model(batch)
            loss = hidden.summed_loss(logits, batch, index)
            right = (logits.argmax(-1) == batch.labels).sum()
            totals += torch.stack([loss.double(), right.double(), right.new_tensor(len(logits)).double()])
    processes.add_([totals])
    loss_sum, num_right, num_tokens = totals.tolist()
    loss_mean = loss_sum / max(num_tokens, 1)
    return {
        "loss": loss_mean,
        "perplexity": math.exp(min(loss_mean, 700.0)),
        "accuracy": num_right / max(num_tokens, 1),
    }
