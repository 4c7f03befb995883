import io
import os
from pathlib import Path

import numpy as np
import pytest
import torch

import encoder.activations as activations
import encoder.frozen_prefix as frozen_prefix
import encoder.training as training
from encoder.batches import Batch, batches_of_tokens
from encoder.errors import EncError
from encoder.freezing import Freezing, freeze_
from encoder.frozen_prefix import FrozenPrefix, frozen_depth, stored_bytes
from encoder.prediction import predict_logits
from encoder.training import train_
from encoder.training_config import TrainingConfig

LENGTHS = [3, 9, 5, 5, 12, 2, 7, 4, 6, 8] * 4
LAYERS = 3


@pytest.fixture(autouse=True)
def several_batches(monkeypatch) -> None:
    monkeypatch.setattr(frozen_prefix, "BATCH_TOKENS", 40)


def config(**changes: object) -> TrainingConfig:
    return TrainingConfig.model_validate({"num_epochs": 3, "batch_size": 8, "learning_rate": 0.01} | changes)


@pytest.fixture(params=["memory", "file"])
def folder(request, tmp_path: Path) -> Path | None:
    return tmp_path if request.param == "file" else None


@pytest.mark.parametrize(
    ("freezing", "depth"),
    [
        (Freezing(), 0),
        (Freezing(embeddings=True), 0),
        (Freezing(layers=1), 1),
        (Freezing(train_last=1), 2),
        (Freezing(classifier_only=True), 3),
        (Freezing(patterns=("encoder.layers.0.*",)), 0),  # the embeddings below change
        (Freezing(patterns=("encoder.embeddings.*", "encoder.layers.0.*", "encoder.layers.2.*")), 1),
        (Freezing(embeddings=True, patterns=("encoder.layers.0.attention.*",)), 0),
    ],
)
def test_prefix_ends_below_the_first_part_that_trains(make_classifier, freezing, depth) -> None:
    model = make_classifier()
    freeze_(model, freezing)
    assert frozen_depth(model) == depth


VARIANTS: dict[str, dict[str, object]] = {
    "post": {},
    "pre": {"norm": "pre"},
    "rotary, mean": {"position_embedding": "rotary", "classifier": {"pooling": "mean"}},
    "attention residuals": {"norm": "pre", "residual": "attention"},
    "blocks": {"norm": "pre", "residual": "block_attention", "residual_block_size": 3},
}


@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS.keys())
def test_depths_are_visited_upwards_without_beginning_again(
    make_config, make_classifier, make_rows, changes
) -> None:
    model, rows = make_classifier(make_config(**changes)), make_rows(LENGTHS)
    expected = predict_logits(model, rows)
    with FrozenPrefix(rows, precision="fp32") as prefix:
        for depth in (1, 2, 3):
            prefix.go_to(model, depth)
            assert prefix.rows.activations.read().nbytes == stored_bytes(rows, model.config, depth)
            assert np.allclose(predict_logits(model, prefix.rows), expected, atol=1e-5)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_sources_in_bf16_go_on_as_in_one_pass(make_config, make_classifier, make_rows, precision) -> None:
    model, rows = make_classifier(make_config(**VARIANTS["blocks"])), make_rows([5, 3])
    expected = predict_logits(model, rows, precision=precision)
    with FrozenPrefix(rows, precision=precision) as prefix:
        prefix.go_to(model, 2)
        found = predict_logits(model, prefix.rows, precision=precision)
        assert np.allclose(found, expected, atol=1e-5 if precision == "fp32" else 0.05)


@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS.keys())
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_going_on_from_stored_activations_gives_the_logits_of_one_pass(
    make_config, make_classifier, make_rows, folder, changes, depth
) -> None:
    model, rows = make_classifier(make_config(**changes)), make_rows(LENGTHS)
    expected = predict_logits(model, rows)
    with FrozenPrefix(rows, precision="fp32", folder=folder) as prefix:
        prefix.go_to(model, depth)
        assert np.allclose(predict_logits(model, prefix.rows), expected, atol=1e-5)
    # The same rows in one batch, where not even rounding differs.
    one = rows.select(range(4))
    with FrozenPrefix(one, precision="fp32", folder=folder) as prefix:
        prefix.go_to(model, depth)
        assert np.array_equal(predict_logits(model, prefix.rows), predict_logits(model, one))


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("changes", [{}, {"norm": "pre"}, {"embedding_size": 8}])
def test_activations_do_not_depend_on_the_way_to_their_depth(
    make_config, make_classifier, make_rows, tmp_path, precision, changes
) -> None:
    model, rows = make_classifier(make_config(**changes)), make_rows(LENGTHS)
    for depth in (1, 2, 3):
        found = []
        for folder in (None, tmp_path):
            for way in ((depth,), range(1, depth + 1), (3, 1, depth)):
                with FrozenPrefix(rows, precision=precision, folder=folder) as prefix:
                    for step in way:
                        prefix.go_to(model, step)
                    found.append(prefix.rows.activations.read())
                    assert prefix.rows.activations.depth == depth
        assert len(found[0]) == (len(rows) if depth == LAYERS else sum(LENGTHS))
        assert all(torch.equal(one, found[0]) for one in found[1:])


def test_ascending_computes_each_layer_once(make_classifier, make_rows, monkeypatch) -> None:
    model, rows = make_classifier(), make_rows(LENGTHS)
    calls = dict.fromkeys(range(LAYERS), 0)
    for index, layer in enumerate(model.encoder.layers):
        layer.register_forward_hook(lambda *_, index=index: calls.update({index: calls[index] + 1}))
    batches = len(batches_of_tokens(rows.lengths, frozen_prefix.BATCH_TOKENS))
    seen = []
    with FrozenPrefix(rows, precision="fp32") as prefix:
        for depth in (1, 2, 3, 3):
            prefix.go_to(model, depth, seen.append)
    assert batches > 3 and set(calls.values()) == {batches}
    assert sum(seen) == 3 * len(rows)


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("accumulation_steps", [1, 2])
def test_training_on_stored_activations_equals_training_on_tokens(
    make_classifier, make_rows, tmp_path, folder, layers, accumulation_steps
) -> None:
    """With dropout on: what is frozen draws no random numbers, so both draw the same."""
    train, validation = make_rows(LENGTHS), make_rows(LENGTHS, seed=1)
    options = config(accumulation_steps=accumulation_steps, class_weights="balanced")
    plain = make_classifier()
    freeze_(plain, Freezing(layers=layers))
    expected = train_(plain, train, validation, options, work_folder=tmp_path / "plain")
    stored = make_classifier()
    freeze_(stored, Freezing(layers=layers))
    with (
        FrozenPrefix(train, precision="fp32", folder=folder) as first,
        FrozenPrefix(validation, precision="fp32", folder=folder) as second,
    ):
        for prefix in (first, second):
            prefix.go_to(stored, frozen_depth(stored))
        outcome = train_(stored, first.rows, second.rows, options, work_folder=tmp_path / "stored")
    for (name, one), two in zip(plain.named_parameters(), stored.parameters(), strict=True):
        if name.endswith("qkv.bias"):  # that of keys shifts a softmax: its gradient is rounding
            one, two = (bias.unflatten(0, (3, -1))[[0, 2]] for bias in (one, two))
        assert torch.allclose(one, two, atol=1e-4), name
    for one, two in zip(outcome.epochs, expected.epochs, strict=True):
        assert one.loss == pytest.approx(two.loss, abs=1e-4)
        assert one.validation == pytest.approx(two.validation)


def test_killed_run_resumes_to_the_same_weights_with_activations_computed_anew(
    make_classifier, make_rows, tmp_path, monkeypatch
) -> None:
    monkeypatch.setattr(training, "SAVE_EVERY_S", 0.0)
    monkeypatch.setattr(training, "SAVE_SHARE", 0)
    rows = make_rows(LENGTHS)

    def run(name: str, stop: int | None = None):
        model = make_classifier()
        freeze_(model, Freezing(layers=2))

        def kill(progress: training.TrainingProgress) -> None:
            if progress.step == stop:
                raise KeyboardInterrupt

        with FrozenPrefix(rows, precision="fp32", folder=tmp_path) as prefix:
            prefix.go_to(model, 2)
            train_(model, prefix.rows, prefix.rows, config(), work_folder=tmp_path / name, resume=True,
                   on_progress=kill)  # fmt: skip
        return model

    whole = run("whole")
    with pytest.raises(KeyboardInterrupt):
        run("cut", stop=12)
    resumed = run("cut")
    for one, two in zip(whole.parameters(), resumed.parameters(), strict=True):
        assert torch.equal(one, two)


def test_nothing_is_left_on_the_disk_after_an_error(make_classifier, make_rows, tmp_path) -> None:
    model, rows = make_classifier(), make_rows(LENGTHS)

    def stop(count: int) -> None:
        raise KeyboardInterrupt

    with FrozenPrefix(rows, precision="fp32", folder=tmp_path) as prefix:
        prefix.go_to(model, 1)
        with pytest.raises(KeyboardInterrupt):
            prefix.go_to(model, 2, stop)
        assert prefix.depth == 0 and prefix.rows.activations is None  # half of them are of the next depth
        assert list(tmp_path.iterdir()) == []
        prefix.go_to(model, 2)
        stored = prefix.rows.activations.read()
    with FrozenPrefix(rows, precision="fp32") as again:
        again.go_to(model, 2)
        assert torch.equal(again.rows.activations.read(), stored)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name != "posix", reason="where files have names as long as they are open")
def test_a_process_that_is_killed_leaves_no_file(make_classifier, make_rows, tmp_path) -> None:
    prefix = FrozenPrefix(make_rows(LENGTHS), precision="fp32", folder=tmp_path)
    prefix.go_to(make_classifier(), 1)
    assert list(tmp_path.iterdir()) == []  # not closed yet: there is no name that anything is left under
    prefix.close()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a disk that is always full")
def test_full_disk_is_said(make_classifier, make_rows, tmp_path, monkeypatch) -> None:
    class Full(io.FileIO):
        def truncate(self, size: int | None = None) -> int:
            return 0

    monkeypatch.setattr(activations.tempfile, "TemporaryFile", lambda **_: Full("/dev/full", "r+"))
    with (
        FrozenPrefix(make_rows(LENGTHS), precision="fp32", folder=tmp_path) as prefix,
        pytest.raises(EncError, match=f"{tmp_path}: activations cannot be stored: No space left"),
    ):
        prefix.go_to(make_classifier(), 1)


def test_rows_without_tokens_stay_as_they_are(make_classifier, make_rows) -> None:
    model, rows = make_classifier(), make_rows([4, 0, 3, 0])
    expected = predict_logits(model, rows)
    for depth in (1, 3):
        with FrozenPrefix(rows, precision="fp32") as prefix:
            prefix.go_to(model, depth)
            assert np.allclose(predict_logits(model, prefix.rows), expected, atol=1e-5)


def test_activations_of_what_trains_are_refused(make_classifier, make_rows, tmp_path) -> None:
    model, rows = make_classifier(), make_rows(LENGTHS)
    freeze_(model, Freezing(layers=1))
    with FrozenPrefix(rows, precision="fp32") as prefix:
        prefix.go_to(model, 2)
        with pytest.raises(ValueError, match="are to be trained"):
            train_(model, prefix.rows, None, config(), work_folder=tmp_path)


def test_size_is_known_beforehand(make_classifier, make_rows) -> None:
    model, rows = make_classifier(), make_rows(LENGTHS)
    assert stored_bytes(rows, model.config, 0) == 0
    for depth in (1, 2, 3):
        with FrozenPrefix(rows, precision="fp32") as prefix:
            prefix.go_to(model, depth)
            values = prefix.rows.activations.read()
        assert values.nbytes == stored_bytes(rows, model.config, depth)


def test_hidden_states_of_a_batch_begin_where_it_does(make_classifier, make_rows) -> None:
    model, rows = make_classifier(), make_rows([4, 6])
    whole = model.encoder(Batch.from_rows(rows), output_hidden_states=True)
    with FrozenPrefix(rows, precision="fp32") as prefix:
        prefix.go_to(model, 1)
        rest = model.encoder(Batch.from_rows(prefix.rows.select([0, 1])), output_hidden_states=True)
    assert len(rest.hidden_states) == LAYERS
    assert all(
        torch.allclose(one, two, atol=1e-6)
        for one, two in zip(rest.hidden_states, whole.hidden_states[1:], strict=True)
    )


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_prefix_on_a_gpu_is_kept_on_the_cpu(make_classifier, make_rows) -> None:
    model, rows = make_classifier(), make_rows(LENGTHS)
    expected = predict_logits(model, rows)
    with FrozenPrefix(rows, precision="fp32", device="cuda") as prefix:
        prefix.go_to(model, 2)
        assert prefix.rows.activations.read().device.type == "cpu"
        assert np.allclose(predict_logits(model, prefix.rows, device="cuda"), expected, atol=1e-4)
