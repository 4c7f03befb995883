"""Claims about whole sweeps over the number of frozen layers, on a tiny random encoder."""

import csv
import json
import random
import shutil

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from encoder.checkpoint import load_classifier
from encoder.errors import ConfigError, EncError
from encoder.model_folder import read_tokenizer
from encoder.prediction import predict_logits
from recipes.evaluate import evaluate
from recipes.evaluate_config import EvaluateConfig
from recipes.finetune import finetune
from recipes.finetune_config import FinetuneConfig
from recipes.freeze_points import Points
from recipes.freeze_sweep import freeze_sweep
from recipes.freeze_sweep_config import FreezeSweepConfig
from recipes.observer import Silent
from recipes.result import read_result

MODEL_FILES = {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}


@pytest.fixture
def options(tiny_model, reviews, tmp_path):
    """The options of a quick sweep; the tiny model has 3 layers."""
    return {
        "model": str(tiny_model),
        "data": str(reviews),
        "output": tmp_path / "sweep",
        "learning_rate": 3e-3,
        "layer_decay": 1.0,
        "num_epochs": 2,
        "batch_size": 8,
        "precision": "fp32",
        "latency": False,
    }


class Watching(Silent):
    """An observer that remembers stages and notes, and presses Ctrl-C after so many training steps."""

    def __init__(self, stop_after: int = 0) -> None:
        self.stages: list[str] = []
        self.notes: list[str] = []
        self.steps = 0
        self.stop_after = stop_after

    def stage(self, name):
        self.stages.append(name)

    def note(self, text):
        self.notes.append(text)

    def training(self, progress):
        self.steps += 1
        if self.steps == self.stop_after:
            raise KeyboardInterrupt


def logits(folder, reviews):
    """What the model in ``folder`` says of the test texts."""
    with (reviews / "test.csv").open() as file:
        texts = [row["text"] for row in csv.DictReader(file)]
    rows, _ = read_tokenizer(folder).encode(texts, None, max_length=64)
    return predict_logits(load_classifier(folder), rows)


def test_sweep_tries_every_k_and_leaves_a_whole_folder(options, reviews):
    result = freeze_sweep(FreezeSweepConfig(**options | {"seeds": 2}))
    sweep = result.sweep
    assert [point.k for point in sweep.points] == [0, 1, 2, 3]
    assert sweep.seeds == (0, 1) and all(len(point.scores) == 2 for point in sweep.points)
    assert sweep.points[0].trainable_parameters == sweep.total_parameters
    trains = [point.trainable_parameters for point in sweep.points]
    assert trains == sorted(trains, reverse=True) and len(set(trains)) == 4
    assert all(point.seconds > 0 for point in sweep.points)
    assert {path.name for path in options["output"].iterdir()} == {*MODEL_FILES, "run.json"}
    assert not options["output"].with_name("sweep.unfinished").exists()
    assert read_result(options["output"]) == result
    stored = json.loads((options["output"] / "run.json").read_text())
    assert stored["command"] == "freeze-sweep"
    assert stored["sweep"]["verdict"]["chosen"] == sweep.verdict.chosen
    assert result.training.best_epoch in (1, 2)
    scored = evaluate(EvaluateConfig(model=str(options["output"]), data=str(reviews)))
    assert scored.scores["test"] == result.scores["test"]


@pytest.mark.parametrize("search", [False, True])
def test_a_point_is_the_model_that_finetune_makes_with_so_many_layers_frozen(
    options, reviews, tmp_path, search
):
    """Whichever points come before it, and whatever the sweep starts from each time."""
    points = {"search": True} if search else {"points": (0, 1, 3)}
    sweep = freeze_sweep(FreezeSweepConfig(**options | points | {"seeds": 2, "keep": "all"}))
    for point in sweep.sweep.points:
        chosen = point.k == sweep.sweep.verdict.chosen
        folder = options["output"] if chosen else options["output"] / f"k{point.k}"
        seed = int(np.argmax(point.scores))
        assert read_result(folder).training.trainable_parameters == point.trainable_parameters
        output = tmp_path / f"finetune-{point.k}"
        alone = finetune(
            FinetuneConfig(**options | {"output": output, "seed": seed, "freeze_layers": point.k})
        )
        assert np.array_equal(logits(folder, reviews), logits(output, reviews))
        assert alone.scores["validation"]["accuracy"] == pytest.approx(point.scores[seed])
        assert alone.training.trainable_parameters == point.trainable_parameters
        one, two = (load_file(where / "model.safetensors") for where in (folder, output))
        assert all(torch.equal(one[name], two[name]) for name in one)


@pytest.mark.parametrize("resumed", [False, True])
def test_warm_up_comes_before_the_first_point_and_changes_none(options, tmp_path, monkeypatch, resumed):
    """Once a process, also one that goes on; what it trains is no part of any result."""
    plan = options | {"points": (0, 2), "keep": "all", "class_weights": "balanced"}
    with monkeypatch.context() as patch:
        patch.setattr(Points, "warm_up", lambda self, k: None)
        cold = freeze_sweep(FreezeSweepConfig(**plan))
    plan["output"] = tmp_path / "warm"
    if resumed:
        with pytest.raises(KeyboardInterrupt):
            freeze_sweep(FreezeSweepConfig(**plan), Watching(stop_after=25))
    real, warmed = Points.warm_up, []

    def warm_up(self, k):
        assert not warmed
        before = {name: value.clone() for name, value in self.base.state_dict().items()}
        random_state = torch.get_rng_state()
        real(self, k)
        warmed.append((k, list(self.folder.glob("warm-up*"))))
        assert torch.equal(random_state, torch.get_rng_state())
        assert all(torch.equal(value, before[name]) for name, value in self.base.state_dict().items())

    monkeypatch.setattr(Points, "warm_up", warm_up)
    watching = Watching()
    warm = freeze_sweep(FreezeSweepConfig(**plan | {"resume": resumed}), watching)
    assert warmed == [(2 if resumed else 0, [])]
    (place,) = [number for number, name in enumerate(watching.stages) if name.startswith("Warming up")]
    assert watching.stages[place + 1].startswith("Point 1 of")
    assert [point.scores for point in warm.sweep.points] == [point.scores for point in cold.sweep.points]
    for part in (".", "k0", "k2"):
        one, two = (folder / part / "model.safetensors" for folder in (options["output"], plan["output"]))
        assert one.exists() == two.exists()
        assert not one.exists() or one.read_bytes() == two.read_bytes()


def test_points_computed_in_every_epoch_score_alike(options, tmp_path):
    kept = freeze_sweep(FreezeSweepConfig(**options))
    plain = freeze_sweep(FreezeSweepConfig(**options | {"output": tmp_path / "plain", "cache_frozen": False}))
    on_disk = freeze_sweep(
        FreezeSweepConfig(**options | {"output": tmp_path / "disk", "cache_memory_gb": 0.0})
    )
    assert [p.scores for p in plain.sweep.points] == [p.scores for p in kept.sweep.points]
    assert [p.scores for p in on_disk.sweep.points] == [p.scores for p in kept.sweep.points]
    assert any("takes" in note and "of disk" in note for note in on_disk.notes)
    assert not any("computed once and takes" in note for note in plain.notes)


@pytest.mark.parametrize("stop_after", [3, 25, 45])
def test_interrupted_sweep_goes_on_without_computing_points_again(options, tmp_path, stop_after):
    changes = {"points": (0, 2, 3)}
    whole_run = Watching()
    whole = freeze_sweep(FreezeSweepConfig(**options | changes), whole_run)
    config = options | changes | {"output": tmp_path / "cut"}
    with pytest.raises(KeyboardInterrupt):
        freeze_sweep(FreezeSweepConfig(**config), Watching(stop_after))
    finished = stop_after // 21  # of 10 updates an epoch, told once more with the scores of each epoch
    rest = Watching()
    resumed = freeze_sweep(FreezeSweepConfig(**config | {"resume": True}), rest)
    assert rest.steps <= whole_run.steps * (3 - finished) / 3
    if finished:
        assert any(f"{finished} of 3 points were finished before" in note for note in rest.notes)
    assert [p.scores for p in resumed.sweep.points] == [p.scores for p in whole.sweep.points]
    assert resumed.model.sha256 == whole.model.sha256
    assert resumed.scores == whole.scores


def test_resumed_sweep_may_have_other_points_but_no_other_training(options):
    with pytest.raises(KeyboardInterrupt):
        freeze_sweep(FreezeSweepConfig(**options), Watching(stop_after=25))
    with pytest.raises(ConfigError, match=r"num_epochs: 2 then, 3 now"):
        freeze_sweep(FreezeSweepConfig(**options | {"resume": True, "num_epochs": 3}))
    changed = {"resume": True, "points": (0, 3), "max_drop": 50.0}
    result = freeze_sweep(FreezeSweepConfig(**options | changed))
    assert [point.k for point in result.sweep.points] == [0, 3]
    again = freeze_sweep(FreezeSweepConfig(**options | changed))
    assert again == result  # finished


def test_search_halves_the_gap_between_fine_and_hurting(options, monkeypatch):
    """Of 12 layers: five points, then those around the bend, which is planted after k = 7."""
    tried = []

    def train(self, k, seed, observer):
        tried.append(k)
        return real(self, min(k, 3), seed, observer).model_copy(update={"k": k, "score": 0.9 - (k > 7) * 0.3})

    real = Points.run
    monkeypatch.setattr(Points, "run", train)
    monkeypatch.setattr("recipes.freeze_sweep._Sweep._sampling_errors", lambda self, best: {})
    monkeypatch.setattr("recipes.freeze_sweep.choose_points", lambda *_: [0, 3, 6, 9, 12])
    monkeypatch.setattr("recipes.freeze_sweep._finish_result", lambda config, sweep, *_: sweep.judge())
    monkeypatch.setattr("recipes.freeze_sweep.write_atomic", lambda *_: None)
    with pytest.raises(AttributeError):  # a verdict is no result; that is all this is about
        freeze_sweep(FreezeSweepConfig(**options | {"search": True}))
    assert tried == [0, 3, 6, 9, 12, 7, 8]


@pytest.mark.parametrize("keep", ["none", "all"])
def test_what_is_kept(options, keep):
    result = freeze_sweep(FreezeSweepConfig(**options | {"keep": keep, "points": (0, 3)}))
    found = {path.relative_to(options["output"]).as_posix() for path in options["output"].rglob("*.*")}
    other = {0: 3, 3: 0}[result.sweep.verdict.chosen]
    if keep == "none":
        assert found == {"run.json"}
        assert any("not kept" in note for note in result.notes)
    else:
        files = {*MODEL_FILES, "run.json"}
        assert found == files | {f"k{other}/{name}" for name in files}
        kept = read_result(options["output"] / f"k{other}")
        point = next(point for point in result.sweep.points if point.k == other)
        assert kept.scores["validation"]["accuracy"] == pytest.approx(point.mean)
        assert kept.parent == result.parent
        assert kept.output == str(options["output"] / f"k{other}")
    assert "test" in result.scores and result.training.trainable_parameters > 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"points": (0, 4, 7)}, r"--points 4,7: .* has 3 layers"),
        ({"best_metric": "acuracy"}, "did you mean 'accuracy'"),
        ({"max_length": 65}, "holds 64 tokens at most"),
    ],
)
def test_mistake_ends_the_sweep_before_anything_is_made(options, change, message):
    if "best_metric" not in change:
        options["data"] = "no-such-file.csv"
        message = rf"{message}[^\n]*\nno-such-file.csv: no such file"
    with pytest.raises(EncError, match=message):
        freeze_sweep(FreezeSweepConfig(**options | change))
    assert not options["output"].with_name("sweep.unfinished").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"points": ()}, "at least 1 item"),
        ({"points": (-1,)}, "greater than or equal to 0"),
        ({"points": (1,), "search": True}, "`points` and `search` both"),
        ({"seeds": 0}, "greater than or equal to 1"),
        ({"max_drop": -1}, "greater than or equal to 0"),
        ({"cache_frozen": False, "cache_memory_gb": 1.0}, "which is switched off"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, change, message):
    with pytest.raises(ValueError, match=message):
        FreezeSweepConfig(**options | change)


@pytest.fixture
def large_options(options, tmp_path):
    """As ``options``, on texts of which the words good and bad say the label; enough of them to judge by."""
    draw = random.Random(0)
    folder = tmp_path / "data"
    folder.mkdir()
    for name, count in (("train", 120), ("validation", 80)):
        with (folder / f"{name}.csv").open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(("text", "label"))
            for _ in range(count):
                label = draw.choice(["good", "bad"])
                rows.writerow((" ".join([label] * 4 + draw.choices(["the", "film", "was", "a"], k=3)), label))
    return options | {"data": str(folder), "num_epochs": 4, "seeds": 2, "learning_rate": 3e-3}


def test_task_that_embeddings_solve_allows_to_freeze_everything(large_options):
    """Even a random encoder passes on to the first token that half of the words are one word."""
    sweep = freeze_sweep(FreezeSweepConfig(**large_options)).sweep
    assert (sweep.verdict.chosen, sweep.verdict.hurts_from) == (3, None)
    assert any("No k that was tried is shown to hurt" in line for line in sweep.verdict.sentences)


def test_task_that_needs_the_embeddings_retrained_hurts_from_the_first_layer(
    large_options, tiny_model, tmp_path
):
    """The vocabulary is remapped: good and bad share a vector, until the embeddings train."""
    remapped = shutil.copytree(tiny_model, tmp_path / "remapped")
    words = (remapped / "vocab.txt").read_text().split()
    weights = load_file(remapped / "model.safetensors")
    table = next(weights[name] for name in weights if name.endswith("word_embeddings.weight"))
    table[words.index("bad")] = table[words.index("good")]
    save_file(weights, remapped / "model.safetensors", metadata={"format": "pt"})
    changes = {"model": str(remapped), "num_epochs": 10, "points": (0, 1, 3)}
    sweep = freeze_sweep(FreezeSweepConfig(**large_options | changes)).sweep
    assert (sweep.verdict.chosen, sweep.verdict.hurts_from) == (0, 1)
    assert sweep.points[0].mean > 0.95
    assert any("From k = 1 on it hurts" in line for line in sweep.verdict.sentences)


def test_nothing_of_a_point_leaks_into_the_next(options, tiny_model, reviews):
    """The loaded model is shared by all points: after a sweep it is as it was."""
    seen = {}
    real = Points.run

    def run(self, k, seed, observer):
        seen.setdefault("before", {n: p.detach().clone() for n, p in self.base.named_parameters()})
        point = real(self, k, seed, observer)
        for name, parameter in self.base.named_parameters():
            assert torch.equal(parameter, seen["before"][name]), (k, name)
            assert parameter.requires_grad
        seen[k] = point
        return point

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Points, "run", run)
        freeze_sweep(FreezeSweepConfig(**options))
    assert set(seen) == {"before", 0, 1, 2, 3}
