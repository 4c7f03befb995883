"""Claims about looking at depth."""

import json
from pathlib import Path

import pytest

from encoder.errors import CheckpointError, ConfigError, EncError
from recipes.depth import depth
from recipes.depth_config import DepthConfig
from recipes.ledger import read_runs

SHAPE = "num_hidden_layers = 3\nhidden_size = 16\nnum_attention_heads = 2\nmax_position_embeddings = 40\n"


@pytest.fixture(scope="module")
def shapes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shapes")
    kinds = {
        "post": "",
        "pre": 'norm = "pre"\n',
        "attention": 'norm = "pre"\nresidual = "attention"\n',
        "blocks": 'norm = "pre"\nresidual = "block_attention"\nresidual_block_size = 2\n',
    }
    for name, more in kinds.items():
        (folder / f"{name}.toml").write_text(SHAPE + more)
    return {name: str(folder / f"{name}.toml") for name in kinds}


def look(models, **options):
    return depth(DepthConfig(models=tuple(models), **{"rows": 8, "max_length": 16} | options))


def test_residuals_are_compared_in_one_run(shapes, tmp_path):
    result = look(shapes.values(), output=tmp_path / "runs" / "depth")
    assert [model.architecture.residual for model in result.models] == [
        "add", "add", "attention", "block_attention"
    ]  # fmt: skip
    assert result.learns == "hidden tokens of random rows"
    for model in result.models:
        assert [point.depth for point in model.points] == [0, 1, 2, 3]
        assert model.points[0].attention is None
        assert all(point.gradient > 0 and 1 <= point.effective_rank <= 16 for point in model.points)
        assert model.gradient_ratio == pytest.approx(model.points[1].gradient / model.points[3].gradient)
    # Queries over depth start at zero, where the norms hide that sums became means: the same function.
    losses = [model.loss for model in result.models[1:]]
    assert losses == pytest.approx([losses[0]] * 3, rel=1e-5)
    kept = json.loads((tmp_path / "runs" / "depth" / "run.json").read_text())
    assert kept["command"] == "depth" and len(kept["models"]) == 4
    (entry,), problems = read_runs(tmp_path / "runs")
    assert entry.run == result and entry.made is None and not problems


def test_a_fine_tuned_model_is_looked_at_through_its_labels(finetuned, reviews, shapes):
    result = look([finetuned.output, shapes["pre"]], data=str(reviews))
    assert result.learns == "labels"
    assert result.parent.sha256 == result.models[0].sha256
    assert result.models[1].sha256 is None
    assert result.models[0].loss < 1
    assert any("have the tokenizer of" in note for note in result.notes)


def test_rows_are_no_longer_than_the_encoders_hold(shapes):
    found = depth(DepthConfig(models=("tiny", shapes["post"]), rows=2))
    assert found.config["max_length"] == 40
    assert [model.tokens for model in found.models] == [80, 80]


def test_a_corpus_is_guessed_and_a_new_head_is_said_to_be(tiny_model, shapes, reviews):
    result = look([str(tiny_model), shapes["post"]], corpus=(str(reviews),))
    assert result.learns == "hidden tokens"
    assert any("the head that guesses tokens is new" in note for note in result.notes)
    alone = look([shapes["post"]], corpus=(str(reviews),))
    assert alone.models[0].points[0].stream == pytest.approx(1.0, rel=1e-3)


def test_the_same_seed_gives_the_same_numbers(shapes):
    first, again, other = (look([shapes["pre"]], seed=seed) for seed in (0, 0, 1))
    assert first.models == again.models
    assert first.models[0].loss != other.models[0].loss


def test_blocks_of_a_pipeline_are_those_of_the_encoder(shapes):
    result = look([shapes["blocks"]], pipeline="stages=3,interleave=2,microbatches=3")
    assert result.pipeline.blocks == 3
    assert result.pipeline.without_cache > result.pipeline.with_cache
    alone = depth(DepthConfig(pipeline="stages=4,interleave=2,microbatches=8"))
    assert (alone.pipeline.blocks, alone.pipeline.without_cache, alone.pipeline.with_cache) == (4, 19, 11)
    assert alone.models == () and alone.learns is None
    assert any("blocks=N" in note for note in alone.notes)


@pytest.mark.parametrize(
    ("models", "options", "kind", "message"),
    [
        (["nowhere/at/all"], {}, CheckpointError, "no such folder.*an encoder to make is a .toml file"),
        (["post"], {"max_length": 41}, ConfigError, "--max-length 41: .* has 40 positions"),
        (["post", "nowhere/x"], {"data": "none.csv"}, EncError, "nowhere/x[\\s\\S]*none.csv: no such file"),
        (["post"], {"output": Path("/proc/x")}, ConfigError, "--output /proc/x: cannot write"),
    ],
)
def test_what_is_wrong_is_told_before_anything_is_computed(shapes, models, options, kind, message):
    with pytest.raises(kind, match=message):
        look([shapes.get(name, name) for name in models], **options)
