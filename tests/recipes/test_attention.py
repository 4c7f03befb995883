"""Claims about the attention of one text."""

from pathlib import Path

import numpy as np
import pytest

from encoder.checkpoint import load_classifier
from encoder.errors import ConfigError
from encoder.metrics import activate
from encoder.model_folder import read_tokenizer
from encoder.prediction import predict_logits
from recipes.attention import attention
from recipes.attention_config import AttentionConfig
from recipes.prune_heads import prune_heads
from recipes.prune_heads_config import PruneHeadsConfig

TEXT = "the film was good"


def look(model, tmp_path, **changes):
    options = {"model": str(model), "text": TEXT, "output": tmp_path / "page.html"}
    return attention(AttentionConfig(**options | changes))


def test_heads_answer_and_tokens_are_those_of_the_text(finetuned, tmp_path):
    seen = look(finetuned.output, tmp_path)
    model = load_classifier(Path(finetuned.output))
    rows, _ = read_tokenizer(Path(finetuned.output)).encode([TEXT])
    logits = predict_logits(model, rows)
    result = seen.result
    assert result.answer.label == model.task.labels[int(logits.argmax())]
    assert result.answer.logit == pytest.approx(float(logits.max()), abs=1e-5)
    assert result.answer.probability == pytest.approx(float(activate(model.task, logits).max()), abs=1e-5)
    assert [token.text for token in result.tokens] == ["[CLS]", *TEXT.split(), "[SEP]"]
    assert [token.sequence for token in result.tokens] == [None, 0, 0, 0, 0, None]
    assert len(result.heads) == len(seen.weights) == 12
    for head in result.heads:
        weights = seen.weights[head.layer, head.head]
        assert weights.shape == (6, 6)
        assert weights.sum(-1) == pytest.approx(np.ones(6), abs=1e-5)
        assert 0 <= head.entropy_bits <= np.log2(6)
        assert head.importance is None
    assert any(abs(head.effect) > 1e-4 for head in result.heads)


def test_encoder_without_a_classifier_has_weights_and_no_effects(tiny_model, tmp_path):
    seen = look(tiny_model, tmp_path, pair="a plot")
    assert seen.result.answer is None
    assert all(head.effect is None for head in seen.result.heads)
    assert [token.sequence for token in seen.result.tokens] == [None, 0, 0, 0, 0, None, 1, 1, None]


def test_pruned_heads_are_shown_as_gone_with_what_they_were_pruned_by(
    finetuned, reviews, tmp_path, no_fresh_process
):
    options = {"model": finetuned.output, "data": str(reviews), "output": tmp_path / "half"}
    pruned = prune_heads(PruneHeadsConfig(**options, sparsity=0.5, repair_rows=40, latency=False))
    seen = look(tmp_path / "half", tmp_path)
    gone = {(head.layer, head.head) for head in seen.result.heads if head.is_gone}
    kept = {(layer.layer, head) for layer in pruned.pruning.layers for head in layer.heads_after}
    assert kept == set(seen.weights)
    assert len(gone) == 6
    assert not gone & kept
    importance = {(head.layer, head.head): head.importance for head in seen.result.heads}
    for layer in pruned.pruning.layers:
        for head, score in zip(layer.heads_before, layer.importance, strict=True):
            assert importance[layer.layer, head] == score
    assert "fisher" in seen.result.importance_from


def test_importance_is_found_on_rows_that_are_given(finetuned, reviews, tmp_path):
    seen = look(finetuned.output, tmp_path, data=str(reviews), rows=20)
    assert all(head.importance >= 0 for head in seen.result.heads)
    assert seen.result.importance_from.startswith("the Fisher information of 20 rows of")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"layer": 3, "head": 0}, r"--layer 3: .* has layers 0 to 2"),
        ({"layer": 1, "head": 4}, "--head 4: the heads of layer 1 are 0, 1, 2, 3"),
        ({"max_length": 65}, "--max-length 65: .* holds 64 tokens at most"),
    ],
)
def test_what_is_not_there_is_refused(finetuned, tmp_path, changes, message):
    with pytest.raises(ConfigError, match=message):
        look(finetuned.output, tmp_path, **changes)


def test_text_with_more_weights_than_a_page_holds_is_refused(finetuned, tmp_path, monkeypatch):
    monkeypatch.setattr("recipes.attention.MOST_WEIGHTS", 400)
    with pytest.raises(ConfigError, match=r"6 tokens has 432 attention weights.*--max-length 5"):
        look(finetuned.output, tmp_path)


def test_encoder_has_no_loss_for_importance(tiny_model, reviews, tmp_path):
    with pytest.raises(ConfigError, match=r"--data: .* has no classifier"):
        look(tiny_model, tmp_path, data=str(reviews))


def test_page_that_is_there_stays(finetuned, tmp_path):
    (tmp_path / "page.html").write_text("mine")
    with pytest.raises(ConfigError, match="the file exists"):
        look(finetuned.output, tmp_path)
