"""Every command takes a ModernBERT, and one with attention residuals, as it takes a BERT."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from commands.app import run
from encoder.checkpoint import load_classifier, save_classifier
from encoder.conversion import config_with_residual, with_residual
from encoder.model import Classifier, initialise_
from encoder.model_folder import read_config, read_tokenizer
from encoder.task import Task
from tests.planted_times import plant

QUICK = ["--precision", "fp32", "--batch-size", "16", "--num-epochs", "1", "--no-latency"]
TEXTS = ["good lovely great film", "bad awful dull plot and very slow long story"]


@pytest.fixture(scope="session")
def modern(tiny_model, tmp_path_factory) -> Path:
    """The folder of a random ModernBERT encoder: 4 layers, hidden size 32, two local layers of window 2."""
    folder = tmp_path_factory.mktemp("models") / "modern"
    folder.mkdir()
    bert = json.loads((tiny_model / "config.json").read_text())
    config = {
        "model_type": "modernbert",
        "architectures": ["ModernBertModel"],
        "vocab_size": bert["vocab_size"],
        "hidden_size": 32,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "intermediate_size": 24,
        "max_position_embeddings": 64,
        "local_attention": 4,
        "pad_token_id": 0,
        "initializer_range": 0.2,
    }
    for name in ("vocab.txt", "tokenizer.json", "special_tokens_map.json"):
        if (tiny_model / name).exists():
            (folder / name).write_bytes((tiny_model / name).read_bytes())
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"do_lower_case": True, "tokenizer_class": "BertTokenizer"})
    )
    (folder / "config.json").write_text(json.dumps(config))
    model = Classifier(read_config(folder), Task(kind="single_label", labels=("a", "b")))
    initialise_(model, model.config, 0)
    save_classifier(model, read_tokenizer(folder), folder)
    (folder / "config.json").write_text(json.dumps(config))  # an encoder, as pretraining leaves it
    return folder


RESIDUALS = {
    "modernbert": [],
    "mean": [],
    "attention": ["--residual", "attention"],
    "blocks": ["--residual", "block_attention", "--residual-block-size", "3"],
}


@pytest.fixture(scope="session")
def folders(modern, reviews, tmp_path_factory) -> Callable[[str], Path]:
    """The folder of a fine-tuned model of a kind, its bottom layer frozen, made through the command once."""
    parent, made = tmp_path_factory.mktemp("runs"), {}

    def folder(kind: str) -> Path:
        if kind not in made:
            made[kind] = parent / kind
            model = modern
            if kind == "mean":
                model = shutil.copytree(modern, parent / "mean encoder")
                config = json.loads((model / "config.json").read_text()) | {"classifier_pooling": "mean"}
                (model / "config.json").write_text(json.dumps(config))
            words = ["finetune", "--model", str(model), "--data", str(reviews), "--output", str(made[kind])]
            rate = ["--learning-rate", "3e-3", "--layer-decay", "1.0", "--freeze-layers", "1"]
            assert run([*words, *QUICK, *rate, *RESIDUALS[kind]]) == 0
        return made[kind]

    return folder


@pytest.fixture(params=RESIDUALS)
def finetuned(request, folders) -> Path:
    """A fine-tuned model of each kind."""
    return folders(request.param)


def logits_of(folder: Path) -> np.ndarray:
    from encoder.prediction import predict_logits

    rows, _ = read_tokenizer(folder).encode(TEXTS)
    return predict_logits(load_classifier(folder), rows)


def test_frozen_layers_stay_and_queries_over_depth_train(finetuned, modern):
    model, before = load_classifier(finetuned), load_classifier(modern, task=Task(kind="regression"))
    frozen = before.encoder.layers[0].state_dict()
    for name, tensor in model.encoder.layers[0].state_dict().items():
        expected = frozen.get(name, torch.zeros_like(tensor))  # a query starts at zero
        assert torch.equal(tensor, expected), name
    queries = [p for name, p in model.named_parameters() if name.endswith("query")]
    assert len(queries) == (0 if model.config.residual == "add" else 8)
    assert sum(bool(query.any()) for query in queries) == max(0, len(queries) - 1)
    assert model.config.layers[1].window == 2


def test_a_folder_says_whether_transformers_can_open_it(finetuned):
    from transformers import AutoModelForSequenceClassification

    raw = json.loads((finetuned / "config.json").read_text())
    if finetuned.name in ("attention", "blocks"):
        assert raw["model_type"] == "enc" and raw["enc"]["encoder"]["residual"] != "add"
        return
    theirs = AutoModelForSequenceClassification.from_pretrained(finetuned).eval()
    rows, _ = read_tokenizer(finetuned).encode(TEXTS)
    for row, expected in enumerate(logits_of(finetuned)):
        ids = torch.from_numpy(rows.select([row]).input_ids.astype(np.int64))[None]
        with torch.no_grad():
            assert theirs(ids).logits[0].numpy() == pytest.approx(expected, abs=1e-4)


def test_conversion_starts_with_equal_logits_of_all_that_is_trained(modern):
    task = Task(kind="single_label", labels=("a", "b", "c"))
    model = load_classifier(modern, task=task)
    rows, _ = read_tokenizer(modern).encode(TEXTS)
    from encoder.prediction import predict_logits

    expected = predict_logits(model, rows)
    for kind, size in (("attention", None), ("block_attention", 3), ("block_attention", 8)):
        converted = with_residual(model, config_with_residual(model.config, kind, size, "m"))
        assert predict_logits(converted, rows) == pytest.approx(expected, abs=1e-5)
        assert converted.new_parameters == model.new_parameters


def words_of(model: str, data: str) -> dict[str, list[str]]:
    """What is said to each command, but for where its output goes."""
    on = [model, "--data", data]
    alone, brief = "--no-latency", ["--min-runs", "2", "--min-seconds", "0"]
    train = ["--batch-size", "16", "--num-epochs", "1", "--precision", "fp32", alone]
    return {
        "evaluate": ["evaluate", *on],
        "predict": ["predict", model, *TEXTS],
        "bench": ["bench", model, "--batch-sizes", "1", "--sequence-lengths", "12", "--runtimes", "onnx-int8",
                  *brief],
        "profile": ["profile", model, "--sequence-lengths", "12", *brief],
        "probe": ["probe", *on, "--train-rows", "40", "--seeds", "2"],
        "attention": ["attention", model, TEXTS[1]],
        "attention --residual": ["attention", model, TEXTS[1], "--residual"],
        "embed": ["embed", model, "--input", f"{data}/test.csv", "--layers", "-2:", "--pooling", "mean"],
        "export": ["export", *on, alone],
        "export fused": ["export", *on, alone, "--graph", "fused"],
        "export int8": ["export", *on, alone, "--precision", "int8", "--max-drop", "100"],
        "prune-heads": ["prune-heads", *on, alone, "--sparsity", "0.4"],
        "prune-neurons": ["prune-neurons", *on, alone, "--sparsity", "0.4", "--recover-epochs", "1"],
        "drop-layers": ["drop-layers", *on, alone, "--layers", "3"],
        "distill": ["distill", *on, *train, "--layers", "2", "--no-control"],
        "distill thinner": ["distill", *on, *train, "--hidden-size", "16", "--heads", "2", "--no-control"],
        "freeze-sweep": ["freeze-sweep", "--model", *on, *train, "--points", "0,2,4", "--seeds", "1"],
        "freeze-sweep --residual": ["freeze-sweep", "--model", *on, *train, "--points", "0,2,4",
                                    "--residual", "attention"],
        "compress": ["compress", *on, "--target-speedup", "3.5", "--max-drop", "99", "--max-candidates", "0"],
        "depth": ["depth", *on, "--rows", "8", "--max-length", "12"],
        "pretrain": ["pretrain", "--model", model, "--corpus", data, "--max-length", "12", *train[:-1]],
    }  # fmt: skip


# Where these models are others: residuals are read, stored or cut, last layers computed whole.
OTHERS = {
    "mean": ("attention", "export", "prune-neurons", "distill", "distill thinner", "freeze-sweep"),
    "attention": ("predict", "embed", "export", "prune-heads", "drop-layers", "distill", "depth", "pretrain"),
    "blocks": ("attention", "compress", "prune-neurons", "distill thinner"),
}
# Not of a plain ModernBERT; the other two do no more than a compression and a sweep with residuals do.
ELSEWHERE = ("attention --residual", "export int8", "freeze-sweep")
CASES = [
    *(("modernbert", command) for command in words_of("", "") if command not in ELSEWHERE),
    *((kind, command) for kind, commands in OTHERS.items() for command in commands),
    *((kind, "attention --residual") for kind in ("attention", "blocks")),
]


@pytest.mark.parametrize(("kind", "command"), CASES)
def test_every_command_takes_it(folders, reviews, kind, command, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("recipes.pruning.prove_reloaded", lambda *_: 0.0)
    plant(monkeypatch)  # a compression measures for half a minute
    words = words_of(str(folders(kind)), str(reviews))[command]
    output = {"attention": "page.html", "attention --residual": "page.html", "embed": "vectors.npy"}
    if command not in ("predict", "evaluate", "bench", "profile", "probe"):
        words = [*words, "--output", output.get(command, "out")]
    assert run(words) == 0, capsys.readouterr().err
    shown = capsys.readouterr()
    if command == "export fused":
        assert (
            "portable, not fused as asked for: ONNX Runtime's own operators do not know rotary" in shown.err
        )
    if command.startswith(("prune", "drop", "distill", "freeze-sweep")):
        assert np.isfinite(logits_of(tmp_path / "out")).all()
    if command == "freeze-sweep --residual":
        assert read_config(tmp_path / "out").residual == "attention"
    if command == "compress":
        found = json.loads((tmp_path / "out" / "run.json").read_text())["compress"]
        assert found["met"], found["verdict"]
        assert (kind == "blocks") == ({one["layers"] for one in found["candidates"]} == {4})


@pytest.mark.parametrize(
    ("kind", "command", "message"),
    [
        ("blocks", "drop-layers", "no layer can be removed: its sublayers are summed in blocks of 3"),
        (
            "blocks",
            "distill",
            "cannot be made of some of its layers: its sublayers are summed in blocks of 3",
        ),
        ("modernbert", "attention --residual", "are added up, so none weighs those before it"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_computed(
    folders, reviews, kind, command, message, tmp_path, capsys
):
    words = words_of(str(folders(kind)), str(reviews))[command]
    assert run([*words, "--output", str(tmp_path / "page.html")]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        ("tiny_model", ["--residual", "attention"], "is post-norm: its LayerNorms sit on the stream itself"),
        ("attention", ["--residual", "attention"], "has attention residuals already (attention)"),
        (
            "modern",
            ["--residual", "block_attention"],
            "--residual block_attention needs a --residual-block-size",
        ),
        ("modern", ["--residual-block-size", "2"], "has no say without --residual block_attention"),
        ("modern", ["--residual", "add"], "--residual is 'add'; expected one of"),
    ],
)
def test_what_cannot_be_converted_is_refused_with_its_reason(
    request, folders, reviews, model, options, message, tmp_path, capsys
):
    folder = folders(model) if model == "attention" else request.getfixturevalue(model)
    words = ["finetune", "--model", str(folder), "--data", str(reviews), "--output", str(tmp_path / "out")]
    assert run([*words, *options]) == 2
    assert message in capsys.readouterr().err


def test_the_map_of_depth_by_depth_is_shown_with_the_effect_of_each_source(folders, tmp_path, capsys):
    page, words = tmp_path / "page.html", ["attention", str(folders("attention")), TEXTS[0], "--residual"]
    capsys.readouterr()  # of the fine-tuning
    assert run([*words, "--output", str(page), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    residual = shown["residual"]
    assert shown["heads"] == [] and residual["block_size"] is None
    assert [source["name"] for source in residual["sources"]][:3] == [
        "embeddings", "0 attention", "0 feed-forward"
    ]  # fmt: skip
    assert [len(reader["weights"]) for reader in residual["readers"]] == list(range(1, 10))
    for reader in residual["readers"]:
        assert sum(reader["weights"]) == pytest.approx(1)
    assert all(source["effect"] is not None for source in residual["sources"])
    text = page.read_text(encoding="utf-8")
    assert "default-src 'none'" in text and "<script" not in text
    assert text.count("<td class=w ") == sum(range(1, 10)) and text.count("<td class=e>") == 9
    assert run([*words, "--output", str(page), "--overwrite"]) == 0
    shown = capsys.readouterr().out
    assert "3 feed-forward" in shown and "effect" in shown


def test_blocks_are_named_by_their_first_and_last_sublayer(folders, tmp_path, capsys):
    words = ["attention", str(folders("blocks")), TEXTS[0], "--residual", "--json"]
    capsys.readouterr()  # of the fine-tuning
    assert run([*words, "--output", str(tmp_path / "page.html")]) == 0
    residual = json.loads(capsys.readouterr().out)["residual"]
    assert [source["name"] for source in residual["sources"]] == [
        "embeddings", "0 attention … 1 attention", "1 feed-forward … 2 feed-forward",
        "3 attention … 3 feed-forward",
    ]  # fmt: skip
    assert residual["block_size"] == 3


@pytest.mark.parametrize("option", ["--layer", "--data"])
def test_sublayers_are_not_mixed_up_with_heads(folders, option, capsys):
    words = ["attention", str(folders("blocks")), TEXTS[0], "--residual", option, "1"]
    assert run([*words, "--head", "0"]) == 2
    assert f"{option} is about heads, and --residual about sublayers" in capsys.readouterr().err
