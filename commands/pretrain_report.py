"""The result of `enc pretrain`: how well held-out tokens are guessed, and what was learnt from."""

from typing import TYPE_CHECKING

from commands.result_tables import time_fact, training_facts
from commands.tables import encoder_words, facts_table, make_table, size
from encoder.wording import counted
from recipes.pretrain_result import Architecture, PretrainResult

if TYPE_CHECKING:
    from rich.console import Console


def show_pretraining(result: PretrainResult, console: "Console") -> None:
    """A line before training and one for each epoch, then the facts."""
    table = make_table("held-out tokens", "loss", "perplexity", "guessed right", "training loss")
    before = result.before
    table.add_row("before", *_scores(before), "")
    for epoch in result.training.epochs:
        kept = " (kept)" if epoch.epoch == result.training.best_epoch else ""
        loss = "–" if epoch.loss is None else f"{epoch.loss:.4f}"
        table.add_row(f"epoch {epoch.epoch}{kept}", *_scores(epoch.validation or {}), loss)
    console.print()
    console.print(table)
    corpus, tokenizer = result.corpus, result.tokenizer
    kind = tokenizer.kind or "of the model"
    facts = [
        ("encoder", describe_architecture(result.architecture)),
        (
            "corpus",
            f"{', '.join(corpus.sources)}: {counted(corpus.train_texts, 'text')}, "
            f"{counted(corpus.train_tokens, 'token')}, {corpus.held_out_tokens:,} more held out",
        ),
        ("tokenizer", f"{kind}, {tokenizer.vocab_size:,} tokens"),
        *training_facts(result.training),
        (
            "speed",
            f"{result.tokens_per_s:,.0f} tokens/s"
            + (f", {result.processes} processes" if result.processes > 1 else ""),
        ),
        ("size", f"{size(result.bytes_on_disk)} on disk"),
        time_fact(result.seconds, result.training),
        ("saved in", str(result.output)),
    ]
    console.print(facts_table(facts))


def describe_architecture(shape: Architecture) -> str:
    """``4 layers, hidden size 256, post-norm, 11,171,072 parameters``."""
    words = encoder_words(shape.num_hidden_layers, shape.hidden_size, shape)
    return f"{words}, {shape.parameters:,} parameters"


def _scores(scores: dict[str, float | None] | dict[str, float]) -> list[str]:
    loss, perplexity, accuracy = (scores.get(name) for name in ("loss", "perplexity", "accuracy"))
    return [
        "–" if loss is None else f"{loss:.4f}",
        "–" if perplexity is None else f"{perplexity:,.1f}",
        "–" if accuracy is None else f"{accuracy:.1%}",
    ]
