"""Claims about distilling, on a tiny fine-tuned encoder of three layers."""

import json
from pathlib import Path

import pytest
import torch

import encoder.training as training
from compress.removal import keep_units
from encoder.checkpoint import load_classifier, save_classifier
from encoder.errors import CheckpointError, ConfigError, DataError
from encoder.model import Classifier, initialise_
from encoder.model_folder import read_config, read_tokenizer
from encoder.task import Task
from encoder.updates import Updates
from recipes.distill import distill
from recipes.distill_config import DistillConfig
from recipes.ledger import make_tree, read_runs
from recipes.observer import Silent


class Killed(BaseException):
    """As a signal would: no handler of ours sees it."""


@pytest.fixture
def options(finetuned, reviews, tmp_path):
    return {
        "model": finetuned.output,
        "data": str(reviews),
        "output": tmp_path / "out",
        "layers": 2,
        "learning_rate": 3e-3,
        "num_epochs": 2,
        "batch_size": 16,
        "precision": "fp32",
        "latency": False,
        "control": False,
    }


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return {name: p.detach() for name, p in load_classifier(folder).named_parameters()}


def test_steps_and_control_have_headings_and_epochs_that_count_through(options):
    class Heard(Silent):
        def __init__(self):
            self.stages, self.epochs = [], []

        def stage(self, name):
            self.stages.append(name)

        def training(self, progress):
            if progress.validation is not None:
                self.epochs.append((progress.epoch, progress.num_epochs))

    heard = Heard()
    more = {"layers": 1, "progressive": 2, "num_epochs": 3, "control": True}
    distill(DistillConfig(**options | more), heard)
    control = "Training the control, the same student from the labels alone"
    assert [name for name in heard.stages if name.startswith("Training")] == [
        "Training the student, step 1 of 2: 2 layers",
        "Training the student, step 2 of 2: 1 layer",
        f"{control}, step 1 of 2: 2 layers",
        f"{control}, step 2 of 2: 1 layer",
    ]
    assert heard.epochs == [(1, 3), (2, 3), (3, 3)] * 2


def test_a_student_learns_beside_a_control_and_the_result_says_so(options, finetuned):
    result = distill(DistillConfig(**options | {"control": True}))
    found = result.distillation
    assert (result.command, result.parent.source) == ("distill", finetuned.output)
    assert result.parent.sha256 == finetuned.model.sha256
    assert (found.init_layers, found.sizes) == ((0, 2), (2,))
    assert (found.teacher.num_hidden_layers, result.model.num_hidden_layers) == (3, 2)
    assert result.model.labels == finetuned.model.labels
    assert result.model.max_length == finetuned.model.max_length  # that of the teacher's fine-tuning
    assert found.teacher.scores == finetuned.scores
    for scores in (result.scores, found.control.scores, found.agreement, found.control.agreement):
        assert set(scores) == {"validation", "test"}
    assert result.against.source == finetuned.output
    assert result.against.scores == finetuned.scores["test"]
    assert result.size.parameters < found.teacher.size.parameters
    assert "The student's layers 0–1 start from the teacher's 0, 2." in result.notes
    (root,) = make_tree(read_runs(options["output"].parent)[0])
    assert [node.source for _, node in root.walk()][1:] == [finetuned.output, str(options["output"])]


def test_without_updates_that_matter_the_student_is_the_layers_it_starts_from(options):
    result = distill(
        DistillConfig(**options | {"learning_rate": 1e-12, "num_epochs": 1, "init_layers": "1,2"})
    )
    made, teacher = load_classifier(options["output"]), load_classifier(Path(options["model"]))
    assert result.distillation.init_layers == (1, 2)
    for place, layer in ((0, 1), (1, 2)):
        for one, other in zip(
            made.encoder.layers[place].parameters(), teacher.encoder.layers[layer].parameters(), strict=True
        ):
            torch.testing.assert_close(one, other)


@pytest.mark.parametrize("preset", ["logits", "hidden", "relations"])
def test_every_preset_teaches(options, preset):
    result = distill(DistillConfig(**options | {"preset": preset, "num_epochs": 3}))
    losses = [epoch.loss for epoch in result.training.epochs]
    assert losses[-1] < losses[0]
    assert set(result.distillation.weights) >= {"soft"}


def test_targets_on_disk_teach_the_same(options, tmp_path):
    options = options | {"preset": "hidden"}
    distill(DistillConfig(**options))
    result = distill(DistillConfig(**options | {"output": tmp_path / "disk", "cache_memory_gb": 0.0}))
    assert result.distillation.on_disk
    one, other = weights(options["output"]), weights(tmp_path / "disk")
    assert all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("stop", [3, 8, 12])
def test_a_run_that_was_killed_resumes_to_the_same_weights(options, tmp_path, monkeypatch, stop):
    """In the first step, in the second, and in the control."""
    monkeypatch.setattr(training, "SAVE_EVERY_S", 0.0)
    monkeypatch.setattr(training, "SAVE_SHARE", 0)
    monkeypatch.setattr(training, "READ_LOSS_EVERY", 1)
    options = options | {"layers": 1, "progressive": 2, "control": True}
    whole = distill(DistillConfig(**options | {"output": tmp_path / "whole"}))
    updates = 0
    update = Updates.make

    def kill(*arguments):
        nonlocal updates
        updates += 1
        if updates == stop:
            raise Killed
        return update(*arguments)

    monkeypatch.setattr(Updates, "make", kill)
    with pytest.raises(Killed):
        distill(DistillConfig(**options))
    monkeypatch.setattr(Updates, "make", update)
    resumed = distill(DistillConfig(**options | {"resume": True}))
    one, other = weights(tmp_path / "whole"), weights(options["output"])
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert resumed.distillation.control.scores == whole.distillation.control.scores
    assert not (options["output"] / "training").exists()


def test_another_loss_is_not_a_run_to_resume(options, monkeypatch):
    monkeypatch.setattr(Updates, "make", lambda *_: (_ for _ in ()).throw(Killed))
    with pytest.raises(Killed):
        distill(DistillConfig(**options))
    with pytest.raises(ConfigError, match=r"temperature: 2\.0 then, 3\.0 now"):
        distill(DistillConfig(**options | {"resume": True, "temperature": 3.0}))


def test_layers_go_in_steps_and_the_map_is_of_the_first_teacher(options):
    result = distill(DistillConfig(**options | {"layers": 1, "progressive": 2, "num_epochs": 3}))
    assert (result.distillation.sizes, result.distillation.init_layers) == ((2, 1), (2,))
    assert [epoch.epoch for epoch in result.training.epochs] == [1, 2, 3]
    assert result.training.best_epoch >= 2


def test_texts_without_labels_are_learnt_from(options, tmp_path):
    file = tmp_path / "more.txt"
    file.write_text("a good story\n\nthe plot was dull\n" + "slow and long " * 40 + "\n")
    result = distill(DistillConfig(**options | {"unlabeled": file}))
    assert result.distillation.unlabeled_rows == 3
    length = result.model.max_length
    assert any(f"Cut at {length} tokens: 1 of 3 unlabeled rows" in note for note in result.notes)
    file.write_text("\n \n")
    with pytest.raises(DataError, match=r"more\.txt.*empty|no texts"):
        distill(DistillConfig(**options | {"unlabeled": file, "overwrite": True}))


def test_a_thinner_student_and_another_model_learn_too(options, tiny_model, tmp_path):
    thin = distill(
        DistillConfig(**options | {"layers": None, "hidden_size": 16, "preset": "hidden", "num_epochs": 1})
    )
    assert (thin.model.hidden_size, thin.model.num_hidden_layers) == (16, 3)
    assert thin.distillation.init_layers is None
    other = distill(
        DistillConfig(
            **options
            | {"layers": None, "student": str(tiny_model), "output": tmp_path / "b", "num_epochs": 1}
        )
    )
    assert other.distillation.init_layers is None
    assert other.model.labels == ("neg", "pos")


def test_pruned_teachers_and_students_are_ordinary_ones(options, tmp_path):
    teacher = Path(options["model"])
    pruned = keep_units(load_classifier(teacher), "heads", [[0, 1, 2, 3], [1], [0, 2]])
    save_classifier(pruned, read_tokenizer(teacher), tmp_path / "pruned")
    shared = options | {"preset": "relations", "num_epochs": 1}
    result = distill(DistillConfig(**shared | {"model": str(tmp_path / "pruned")}))
    assert result.distillation.init_layers == (0, 2)
    assert load_classifier(options["output"]).config.layers[1].heads == (0, 2)
    student = {"student": str(tmp_path / "pruned"), "layers": None, "output": tmp_path / "b"}
    result = distill(DistillConfig(**shared | student))
    assert load_classifier(tmp_path / "b").config.layers == pruned.config.layers


@pytest.mark.parametrize("kind", ["multi_label", "regression"])
def test_every_kind_of_task_is_distilled(options, tiny_model, tmp_path, kind):
    from recipes.finetune import finetune
    from recipes.finetune_config import FinetuneConfig

    cells = {"multi_label": ["a|b", "b", "a", "c|a"], "regression": ["0.5", "1.25", "2.0", "-1.5"]}[kind]
    lines = [
        f"the {chr(97 + i % 26)} film {i // 26} was {('good', 'bad', 'dull', 'slow')[i % 4]},{cells[i % 4]}"
        for i in range(60)
    ]
    data = tmp_path / "data.csv"
    data.write_text("text,label\n" + "\n".join(lines) + "\n")
    shared = {"data": str(data), "learning_rate": 3e-3, "num_epochs": 1, "batch_size": 16, "latency": False}
    if kind == "multi_label":
        shared["label_separator"] = "|"
    finetune(FinetuneConfig(model=str(tiny_model), output=tmp_path / "teacher", task=kind, **shared))
    result = distill(
        DistillConfig(**options | shared | {"model": str(tmp_path / "teacher"), "control": True})
    )
    assert result.model.task == kind
    assert set(result.distillation.agreement) == {"validation"}


# ---- what is refused, before anything is computed ---------------------------------------------------------


@pytest.fixture
def nothing_computed(monkeypatch):
    def computed(*_, **__):
        raise AssertionError("computed")

    monkeypatch.setattr("recipes.distill.score_split", computed)
    monkeypatch.setattr("compress.teacher.compute_targets", computed)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"layers": 4}, "--layers 4: .* has 3 layers"),
        ({"layers": None, "init_layers": "0,3"}, "--init-layers 3: .* has 3 layers, counted from 0"),
        ({"progressive": 2}, "--progressive 2: 1 of 3 layers go"),
        ({"layers": None, "heads": 5}, "a hidden size of 32 cannot be shared by 5 heads"),
        ({"layers": 5, "hidden_size": 16}, "--layers 5: .* has 3 layers"),
        ({"preset": "relations", "relation_heads": 5}, "--relation-heads 5: queries are 32 wide"),
        ({"task": "regression"}, "--task regression: the model was trained for single-label"),
    ],
)
def test_what_does_not_fit_the_teacher_is_refused(options, nothing_computed, changes, match):
    with pytest.raises(ConfigError, match=match):
        distill(DistillConfig(**options | changes))
    assert not options["output"].with_name("out.unfinished").exists()


def test_labels_that_the_teacher_does_not_have_are_refused_with_both_shown(
    options, nothing_computed, tmp_path
):
    data = tmp_path / "other.csv"
    data.write_text("text,label\n" + "a good film,joy\na bad film,anger\n" * 10)
    with pytest.raises(
        DataError, match=r"(?s)label 'joy' is none of .*the labels of the model: 'neg', 'pos'$"
    ):
        distill(DistillConfig(**options | {"data": str(data)}))


def test_an_encoder_is_no_teacher(options, tiny_model, nothing_computed):
    with pytest.raises(CheckpointError, match="an encoder without a classifier; fine-tune it first"):
        distill(DistillConfig(**options | {"model": str(tiny_model)}))


def test_a_student_with_other_tokens_or_labels_is_refused_with_both_shown(
    options, tiny_model, nothing_computed, tmp_path
):
    other = tmp_path / "other"
    model = Classifier(read_config(tiny_model), Task(kind="single_label", labels=("x", "y")))
    initialise_(model, model.config, 0)
    save_classifier(model, read_tokenizer(tiny_model), other)
    tokenizer = json.loads((other / "tokenizer.json").read_text())
    tokenizer["normalizer"] = None
    (other / "tokenizer.json").write_text(json.dumps(tokenizer))
    with pytest.raises(ConfigError) as error:
        distill(DistillConfig(**options | {"layers": None, "student": str(other)}))
    assert str(error.value).count("SHA-256") == 2
    assert "a classifier for other labels, 'x', 'y'; the teacher" in str(error.value)
    assert "has 'neg', 'pos'" in str(error.value)


def test_the_order_of_labels_in_the_data_does_not_matter(options, reviews, tmp_path, finetuned):
    """K5: the teacher's order is the student's, whatever comes first in the file."""
    data = tmp_path / "reversed"
    data.mkdir()
    for split in ("train", "validation", "test"):
        head, *lines = (reviews / f"{split}.csv").read_text().splitlines()
        (data / f"{split}.csv").write_text("\n".join([head, *reversed(lines)]) + "\n")
    result = distill(DistillConfig(**options | {"data": str(data)}))
    assert result.model.labels == ("neg", "pos")
    assert result.distillation.teacher.scores["test"] == pytest.approx(finetuned.scores["test"])


def test_a_student_whose_labels_stand_in_another_order_is_put_in_the_teachers(options, tmp_path):
    """K5: the teacher itself, its two labels swapped, is a student that agrees with it everywhere."""
    folder = Path(options["model"])
    teacher = load_classifier(folder)
    swapped = Classifier(teacher.config, Task(kind="single_label", labels=("pos", "neg")))
    state = teacher.state_dict()
    for name in ("classifier.output.weight", "classifier.output.bias"):
        state[name] = state[name].flip(0)
    swapped.load_state_dict(state)
    save_classifier(swapped, read_tokenizer(folder), tmp_path / "swapped")
    student = {"student": str(tmp_path / "swapped"), "layers": None, "learning_rate": 1e-12, "num_epochs": 1}
    result = distill(DistillConfig(**options | student))
    assert result.model.labels == ("neg", "pos")
    assert result.distillation.agreement == {"validation": 1.0, "test": 1.0}
