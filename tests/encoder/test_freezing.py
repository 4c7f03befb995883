import pytest
import torch

from encoder.batches import Batch
from encoder.dropout import Dropout
from encoder.errors import ConfigError
from encoder.freezing import Freezing, freeze_, trainable, training_mode_
from encoder.prediction import autocast


def frozen_names(model) -> set[str]:
    return {name for name, p in model.named_parameters() if not p.requires_grad}


@pytest.mark.parametrize(
    ("freezing", "prefixes"),
    [
        (Freezing(layers=2), ("encoder.embeddings.", "encoder.layers.0.", "encoder.layers.1.")),
        (Freezing(embeddings=True), ("encoder.embeddings.",)),
        (Freezing(train_last=1), ("encoder.embeddings.", "encoder.layers.0.", "encoder.layers.1.")),
        (Freezing(train_last=3), ("encoder.embeddings.",)),
        (Freezing(classifier_only=True), ("encoder.",)),
        (Freezing(patterns=("*.attention.*",)), tuple(f"encoder.layers.{i}.attention." for i in range(3))),
        (Freezing(), ("nothing",)),
    ],
)
def test_exactly_the_named_parts_freeze(make_classifier, freezing, prefixes) -> None:
    model = make_classifier()
    result = freeze_(model, freezing)
    expected = {name for name, _ in model.named_parameters() if name.startswith(prefixes)}
    assert frozen_names(model) == expected
    assert result.trainable_parameters == sum(p.numel() for p in trainable(model).values())
    assert result.total_parameters == sum(p.numel() for p in model.parameters())


def test_dropout_is_off_in_frozen_parts_and_on_elsewhere(make_classifier) -> None:
    model = make_classifier()
    freeze_(model, Freezing(layers=1, patterns=("encoder.layers.2.attention.*",)))
    training_mode_(model)
    assert not model.encoder.embeddings.dropout.training
    assert not any(m.training for m in model.encoder.layers[0].modules())
    assert model.encoder.layers[1].dropout.training and model.encoder.layers[1].attention.training
    assert not model.encoder.layers[2].attention.training and model.encoder.layers[2].dropout.training
    assert all(m.training for m in model.classifier.modules() if isinstance(m, Dropout))


def test_the_sentence_says_what_is_frozen(make_classifier) -> None:
    assert freeze_(make_classifier(), Freezing()).description == "Nothing is frozen."
    sentence = freeze_(make_classifier(), Freezing(layers=2)).description
    assert "embeddings, layers 0–1 of 3" in sentence and "without dropout" in sentence


@pytest.mark.parametrize(
    ("freezing", "message"),
    [
        (Freezing(layers=4), "--freeze-layers 4: the model has 3 layers"),
        (Freezing(train_last=4), "--train-last 4: the model has 3 layers"),
        (Freezing(layers=1, train_last=1), "give one"),
        (Freezing(train_last=1, classifier_only=True), "exclude each other"),
        (Freezing(patterns=("encoder.layer.0.*",)), "matches no parameter"),
        (Freezing(patterns=("*",)), "nothing is left to train"),
    ],
)
def test_what_cannot_be_frozen_is_refused(make_classifier, freezing, message) -> None:
    with pytest.raises(ConfigError, match=message):
        freeze_(make_classifier(), freezing)


@pytest.mark.parametrize(
    "freezing", [Freezing(layers=2), Freezing(embeddings=True), Freezing(patterns=("*.attention.*",))]
)
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_recomputing_activations_above_frozen_parts_changes_no_gradient(
    make_config, make_classifier, make_rows, monkeypatch, freezing, precision
) -> None:
    def gradients(kept: int) -> dict[str, torch.Tensor]:
        monkeypatch.setattr("encoder.attention.MAX_KEPT_WEIGHTS", kept)
        model = make_classifier(make_config(attention_dropout=0.3))
        freeze_(model, freezing)
        training_mode_(model)
        torch.manual_seed(0)
        with autocast("cpu", precision):
            logits = model(Batch.from_rows(make_rows([9, 4, 17])))
        logits.float().square().sum().backward()
        assert all(p.grad is None for p in model.parameters() if not p.requires_grad)
        return {name: p.grad for name, p in trainable(model).items() if p.grad is not None}

    kept, recomputed = gradients(1 << 30), gradients(0)
    model = make_classifier()
    freeze_(model, freezing)
    assert recomputed.keys() == kept.keys() == trainable(model).keys()
    for name, gradient in kept.items():
        assert gradient.abs().max() > 0, name
        assert torch.allclose(recomputed[name], gradient, rtol=1e-4, atol=1e-5), name


def test_a_frozen_bottom_needs_no_gradient_graph(make_classifier, make_rows) -> None:
    model = make_classifier()
    freeze_(model, Freezing(layers=2))
    training_mode_(model)
    states = model.encoder(Batch.from_rows(make_rows([3, 4])), output_hidden_states=True).hidden_states
    assert [s.requires_grad for s in states] == [False, False, False, True]
    assert torch.isfinite(states[-1]).all()
