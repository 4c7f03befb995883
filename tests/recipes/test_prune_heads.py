"""Claims about pruning heads, on a tiny fine-tuned encoder."""

import importlib
import json
from pathlib import Path

import pytest

import recipes.pruning_inputs
from encoder.checkpoint import load_classifier
from encoder.errors import CompressionError, ConfigError, DataError
from encoder.rows import TokenizedRows
from recipes.evaluate import evaluate
from recipes.evaluate_config import EvaluateConfig
from recipes.finetune import finetune
from recipes.finetune_config import FinetuneConfig
from recipes.predict import predict
from recipes.predict_config import PredictConfig
from recipes.profile import profile
from recipes.profile_config import ProfileConfig
from recipes.prune_heads import prune_heads
from recipes.prune_heads_config import PruneHeadsConfig
from recipes.result import read_result


@pytest.fixture
def options(finetuned, reviews, tmp_path, request):
    if "with_proof" not in request.fixturenames:
        request.getfixturevalue("no_fresh_process")
    return {
        "model": finetuned.output,
        "data": str(reviews),
        "output": tmp_path / "out",
        "repair_rows": 40,
        "latency": False,
    }


@pytest.fixture
def with_proof():
    """Of a test that loads the pruned model in a fresh process."""


@pytest.fixture(scope="module")
def pruned(finetuned, reviews, tmp_path_factory):
    """Half of the 12 heads gone, all of layer 1 among them."""
    return prune_heads(
        PruneHeadsConfig(
            model=finetuned.output,
            data=str(reviews),
            output=tmp_path_factory.mktemp("pruned") / "half",
            keep="0:0,3;1:",
            latency=False,
        )
    )


def test_folder_is_whole_and_run_json_is_the_result(options):
    result = prune_heads(PruneHeadsConfig(**options, sparsity=0.4))
    assert {path.name for path in options["output"].iterdir()} == {
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
        "run.json",
    }
    assert not options["output"].with_name("out.unfinished").exists()
    assert read_result(options["output"]) == result


def test_what_was_removed_is_told(options, finetuned):
    found = prune_heads(PruneHeadsConfig(**options, sparsity=0.4)).pruning
    assert (found.unit, found.method, found.units_before, found.units_after) == ("heads", "fisher", 12, 7)
    assert found.sparsity == pytest.approx(5 / 12)
    assert (found.rows, found.rows_split, found.repair_rows) == (80, "train", 40)
    model = load_classifier(options["output"])
    assert [layer.heads_after for layer in found.layers] == [one.heads for one in model.config.layers]
    assert [len(layer.importance) for layer in found.layers] == [4, 4, 4]
    lowest = sorted(score for layer in found.layers for score in layer.importance)[:5]
    gone = [
        layer.importance[layer.heads_before.index(head)]
        for layer in found.layers
        for head in set(layer.heads_before) - set(layer.heads_after)
    ]
    assert sorted(gone) == lowest
    assert found.before == {name: finetuned.scores[name] for name in ("test", "validation")}
    assert len(found.control.scores) == 3
    assert found.control.split == "test"


def test_proof_and_size(options, with_proof):
    result = prune_heads(PruneHeadsConfig(**options, heads=5))
    found = result.pruning
    assert found.masked_difference < 1e-5
    assert found.reloaded_difference < 1e-5
    before, after = found.size_before, result.size
    assert after.parameters < before.parameters
    assert after.parameters_without_embeddings < before.parameters_without_embeddings
    assert after.bytes_on_disk < before.bytes_on_disk
    (length,) = after.macs_per_token
    assert after.macs_per_token[length] < before.macs_per_token[length]
    assert result.against.source == options["model"]
    assert result.parent.sha256 != result.model.sha256


def test_nothing_removed_is_the_parent(options, finetuned):
    result = prune_heads(PruneHeadsConfig(**options, sparsity=0.0))
    assert result.model.sha256 == finetuned.model.sha256
    assert result.pruning.control is None


def test_rows_that_importance_and_repair_look_at_are_never_reported_ones(options, reviews, monkeypatch):
    """P8, where the validation rows have to be cut from those of training."""
    data = reviews_without_validation(reviews, options["output"].parent / "data")
    seen, split = [], {}

    def spy(place, what):
        real = getattr(importlib.import_module(place), what)

        def looking(*arguments, **keywords):
            seen.extend(one for one in arguments if isinstance(one, TokenizedRows))
            return real(*arguments, **keywords)

        monkeypatch.setattr(f"{place}.{what}", looking)

    spy("compress.pruning", "score_units")
    spy("compress.pruning", "repair_")
    tokenize = recipes.pruning_inputs.tokenize

    def keep_splits(*arguments, **keywords):
        made = tokenize(*arguments, **keywords)
        split.update(made.rows)
        return made

    monkeypatch.setattr("recipes.pruning_inputs.tokenize", keep_splits)
    prune_heads(PruneHeadsConfig(**options | {"data": str(data)}, sparsity=0.3))
    reported = contents(split["validation"]) | contents(split["test"])
    assert len(seen) == 3  # scoring, repair, repair of the control
    assert len(reported) > 25
    assert all(contents(rows) <= contents(split["train"]) for rows in seen)
    assert not reported & set().union(*map(contents, seen))


def contents(rows: TokenizedRows) -> set[tuple[int, ...]]:
    return {tuple(rows.select([row]).input_ids.tolist()) for row in range(len(rows))}


def reviews_without_validation(reviews: Path, folder: Path) -> Path:
    folder.mkdir()
    for name in ("train.csv", "test.csv"):
        (folder / name).write_text((reviews / name).read_text())
    return folder


def test_pruned_model_goes_through_every_other_command(pruned, reviews, tmp_path):
    folder = pruned.output
    scored = evaluate(EvaluateConfig(model=folder, data=str(reviews)))
    assert scored.scores["test"] == pruned.scores["test"]
    assert scored.against.source
    (rows,) = list(predict(PredictConfig(model=folder, texts=("a good film",))).rows)
    assert rows[0].labels
    assert profile(ProfileConfig(model=folder, sequence_lengths=(8,), min_runs=1, min_seconds=0)).profile.rows
    trained = finetune(
        FinetuneConfig(
            model=folder, data=str(reviews), output=tmp_path / "trained", num_epochs=1, latency=False
        )
    )
    assert trained.parent.sha256 == pruned.model.sha256
    heads = [shape.heads for shape in load_classifier(tmp_path / "trained").config.layers]
    assert heads == [(0, 3), (), (0, 1, 2, 3)]


def test_pruned_again_heads_keep_their_first_numbers(pruned, reviews, tmp_path):
    again = {"model": pruned.output, "data": str(reviews), "latency": False}
    result = prune_heads(PruneHeadsConfig(**again, output=tmp_path / "b", keep="0:3;2:1,2"))
    assert [layer.heads_before for layer in result.pruning.layers] == [(0, 3), (), (0, 1, 2, 3)]
    assert [layer.heads_after for layer in result.pruning.layers] == [(3,), (), (1, 2)]
    with pytest.raises(CompressionError, match="--keep: layer 0 has no 1; it has 0, 3"):
        prune_heads(PruneHeadsConfig(**again, output=tmp_path / "c", keep="0:1"))


def test_recovery_trains_what_is_left_and_keeps_the_best_epoch(options):
    result = prune_heads(PruneHeadsConfig(**options, heads=4, recover_epochs=2, learning_rate=3e-3))
    assert len(result.training.epochs) == 2
    assert result.pruning.recover_epochs == 2
    assert "training" not in {path.name for path in options["output"].iterdir()}
    kept = result.training.epochs[result.training.best_epoch - 1]
    assert result.scores["validation"] == kept.validation


def test_max_drop_finds_the_largest_share_that_is_within(options):
    found = prune_heads(PruneHeadsConfig(**options, max_drop=5.0)).pruning
    assert found.failure is None
    kept = next(trial for trial in found.trials if trial.units == found.units_after)
    assert kept.drop <= 0.05
    assert all(trial.drop > 0.05 for trial in found.trials if trial.units < found.units_after)


@pytest.fixture
def two_points_a_head(monkeypatch):
    """Every head that goes costs two points."""

    def drop(self, model):
        return 0.02 * (12 - sum(shape.num_attention_heads for shape in model.config.layers))

    monkeypatch.setattr("recipes.pruning_search.Chooser._drop", drop)


def test_max_drop_finds_as_much_as_it_allows(options, two_points_a_head):
    found = prune_heads(PruneHeadsConfig(**options, max_drop=9.0)).pruning
    assert (found.units_after, found.failure) == (8, None)


def test_number_that_max_drop_forbids_keeps_the_best_and_says_why(options, two_points_a_head):
    found = prune_heads(PruneHeadsConfig(**options, heads=6, max_drop=5.0)).pruning
    assert found.units_after == sum(
        len(one.heads) for one in load_classifier(options["output"]).config.layers
    )
    assert found.units_after == 10
    assert found.failure == (
        "--max-drop 5 is not met: with 6 heads the validation score falls by 12.00 points; 10 are kept, and "
        "it falls by 4.00 points"
    )


def test_max_drop_that_nothing_meets_keeps_the_least_and_says_so(options, two_points_a_head):
    found = prune_heads(PruneHeadsConfig(**options, max_drop=1.0)).pruning
    assert found.units_after == 11
    assert "without 1 of 12 heads the validation score already falls by 2.00 points" in found.failure


def test_max_drop_is_judged_after_the_training_where_there_is_one(options):
    config = PruneHeadsConfig(**options, heads=1, max_drop=100.0, recover_epochs=1)
    assert prune_heads(config).pruning.failure is None


def test_drop_that_training_did_not_win_back_is_a_failure_with_its_reason(options, monkeypatch):
    monkeypatch.setattr("recipes.pruning_search.drop_of", lambda inputs, after: 0.03)
    asked = {"heads": 4, "recover_epochs": 1}
    failure = prune_heads(PruneHeadsConfig(**options, max_drop=2.0, **asked)).pruning.failure
    assert failure == (
        "--max-drop 2 is not met: after the training the validation score is lower by 3.00 points; that "
        "model was kept"
    )
    assert (options["output"] / "run.json").exists()


def test_label_free_scoring_needs_no_answer_to_be_right(options):
    result = prune_heads(PruneHeadsConfig(**options, sparsity=0.25, targets="model"))
    assert result.pruning.targets == "model"
    assert result.pruning.units_after == 9


@pytest.mark.parametrize("method", ["gradient", "ablation", "magnitude", "random"])
def test_every_method_ends_with_so_many_heads(options, method):
    result = prune_heads(PruneHeadsConfig(**options, heads=6, method=method, steps=2, min_heads_per_layer=1))
    assert result.pruning.units_after == 6
    assert all(layer.after >= 1 for layer in result.pruning.layers)


def test_mistakes_are_told_before_anything_is_computed(options, reviews, tiny_model, tmp_path, monkeypatch):
    """P9: no weights are read before all of this is known."""
    monkeypatch.setattr("encoder.checkpoint.load_classifier", lambda *a, **k: pytest.fail("too late"))

    def refuse(error, match, **changes):
        with pytest.raises(error, match=match):
            prune_heads(PruneHeadsConfig(**{**options, **changes}))

    refuse(ConfigError, "--heads 13: .* has 12 heads", heads=13)
    refuse(
        ConfigError,
        "3 heads would stay, but --min-heads-per-layer 2 demands 6",
        heads=3,
        min_heads_per_layer=2,
    )
    refuse(CompressionError, "no layer 3; the model has 3", keep="3:0")
    refuse(ConfigError, "--keep leaves less .* in layer 1", keep="1:", min_heads_per_layer=1)
    refuse(Exception, "without a classifier", sparsity=0.5, model=str(tiny_model))
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "file").write_text("")
    refuse(ConfigError, "exists and is not empty", sparsity=0.5, output=tmp_path / "there")
    refuse(ConfigError, "has no training rows", sparsity=0.5, data=str(_only_test(reviews, tmp_path)))
    wrong = tmp_path / "wrong.csv"
    wrong.write_text("text,label\ngood film,neutral\nbad film,neg\n")
    refuse(DataError, "'neutral'", sparsity=0.5, data=str(wrong))
    assert not options["output"].exists()


def _only_test(reviews: Path, folder: Path) -> Path:
    (folder / "only").mkdir()
    (folder / "only" / "test.csv").write_text((reviews / "test.csv").read_text())
    return folder / "only"


def test_nothing_is_left_behind_by_a_run_that_fails(options, monkeypatch):
    monkeypatch.setattr("compress.proof.TOLERANCE", -1.0)
    with pytest.raises(CompressionError, match="should give the same logits"):
        prune_heads(PruneHeadsConfig(**options, sparsity=0.5))
    assert not list(options["output"].parent.glob("out*"))


@pytest.mark.slow
def test_latency_is_compared_with_the_parent_in_words(options, monkeypatch):
    monkeypatch.setattr("recipes.side_by_side.LAUNCHES", 2)
    monkeypatch.setattr("recipes.side_by_side.SECONDS", 0.0)
    result = prune_heads(PruneHeadsConfig(**options | {"latency": True}, sparsity=0.5))
    pairs = {(one.device, one.shape.batch_size) for one in result.pruning.speedups}
    assert {("cpu", 1)} <= pairs
    assert all(one.verdict in ("faster", "slower", "inside the noise") for one in result.pruning.speedups)
    assert len(result.latency) == len(result.pruning.latency_before)
    assert json.loads((options["output"] / "run.json").read_text())["pruning"]["speedups"]
