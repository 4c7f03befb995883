"""Claims about pretraining: what comes out, that it goes on, and that processes together do what one does."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import encoder.training as training
from encoder.errors import CheckpointError, ConfigError, DataError, EncError
from encoder.model_folder import read_config, read_task, read_tokenizer
from recipes.finetune import finetune
from recipes.finetune_config import FinetuneConfig
from recipes.ledger import read_runs
from recipes.pretrain import pretrain
from recipes.pretrain_config import PretrainConfig
from recipes.runs import runs
from recipes.runs_config import RunsConfig

SHAPE = """
num_hidden_layers = 2
hidden_size = 32
num_attention_heads = 4
max_position_embeddings = 64
initializer_range = 0.1
hidden_dropout = 0.0
attention_dropout = 0.0
"""


class Killed(BaseException):
    """As a signal would."""


@pytest.fixture(scope="module")
def shape(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("shapes") / "own.toml"
    path.write_text(SHAPE)
    return path


def options(shape, reviews, output, **changes):
    values = {
        "corpus": (str(reviews),),
        "config": str(shape),
        "output": output,
        "vocab_size": 60,
        "num_epochs": 3,
        "batch_size": 8,
        "learning_rate": 1e-2,
        "max_length": 16,
        "precision": "fp32",
    }
    return PretrainConfig(**values | changes)


@pytest.fixture(scope="module")
def pretrained(shape, reviews, tmp_path_factory):
    return pretrain(options(shape, reviews, tmp_path_factory.mktemp("runs") / "own", num_epochs=6))


def test_an_encoder_is_made_that_guesses_better_than_before(pretrained):
    assert pretrained.held_out["loss"] < pretrained.before["loss"] - 0.3
    losses = [epoch.validation["loss"] for epoch in pretrained.training.epochs]
    assert pretrained.held_out["loss"] == min(losses)
    assert pretrained.training.best_metric == "loss"
    assert pretrained.tokens_per_s > 0
    corpus = pretrained.corpus
    assert (corpus.train_texts, corpus.held_out_texts) == (80, 24)
    assert corpus.train_rows == -(-(corpus.train_tokens + 80) // 14)
    assert pretrained.architecture.num_hidden_layers == 2
    assert pretrained.architecture.parameters == pretrained.training.total_parameters


def test_its_folder_is_a_model_to_go_on_from(pretrained, reviews, tmp_path):
    folder = Path(pretrained.output)
    assert sorted(path.name for path in folder.iterdir()) == [
        "config.json", "model.safetensors", "run.json", "tokenizer.json", "tokenizer_config.json",
    ]  # fmt: skip
    assert read_task(folder) is None
    assert read_config(folder).vocab_size == read_tokenizer(folder).vocab_size
    result = finetune(FinetuneConfig(model=pretrained.output, data=str(reviews), output=tmp_path / "tuned",
                                     num_epochs=1, latency=False, max_length=12))  # fmt: skip
    assert result.parent.sha256 == pretrained.encoder.sha256
    assert result.parent.run["command"] == "pretrain"


def test_attention_residuals_start_as_the_same_function(reviews, tmp_path):
    """An encoder that is made, or trained further, guesses at first what it would with plain residuals."""
    (tmp_path / "pre.toml").write_text(SHAPE + 'norm = "pre"\n')
    how = {"num_epochs": 1, "learning_rate": 1e-2, "batch_size": 8, "precision": "fp32"}
    new = {"corpus": (str(reviews),), "config": str(tmp_path / "pre.toml"), "vocab_size": 60} | how
    plain = pretrain(PretrainConfig(**new, output=tmp_path / "plain"))
    made = pretrain(PretrainConfig(**new, output=tmp_path / "made", residual="attention"))
    assert made.before["loss"] == pytest.approx(plain.before["loss"], abs=1e-5)
    assert made.encoder.max_length == 64  # all that it holds, less than is usual
    further = pretrain(
        PretrainConfig(
            corpus=(str(reviews),),
            model=str(plain.output),
            output=tmp_path / "further",
            residual="block_attention",
            residual_block_size=3,
            **how,
        )
    )
    assert further.before["loss"] == pytest.approx(plain.held_out["loss"], abs=1e-5)
    assert read_config(tmp_path / "further").residual_block_size == 3
    assert (made.architecture.residual, further.architecture.residual) == ("attention", "block_attention")


def test_transformers_opens_it_and_finds_the_same_loss(pretrained, reviews):
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    from encoder.batches import Batch
    from encoder.corpus import pack_texts, read_corpus
    from encoder.masking import MaskedTokens, Masking

    folder = Path(pretrained.output)
    theirs, tokenizer = AutoModelForMaskedLM.from_pretrained(folder).eval(), read_tokenizer(folder)
    assert AutoTokenizer.from_pretrained(folder).mask_token_id == tokenizer.token_id("mask_token")
    corpus = read_corpus([str(reviews)], text_column=None, encoding=None, fraction=0.05)
    rows = pack_texts(corpus.texts(held_out=True), tokenizer, 16).rows
    masking = Masking(
        tokenizer.token_id("mask_token"), tokenizer.special_ids, tokenizer.vocab_size, 0.15, 1 << 32
    )
    loss, tokens = 0.0, 0
    for row in range(len(rows)):
        hidden = MaskedTokens(masking, rows)
        batch = hidden.prepare(Batch.from_rows(rows.select([row])), torch.tensor([row]).numpy(), 0)
        with torch.no_grad():
            logits = theirs(input_ids=batch.input_ids[None]).logits[0]
        loss += torch.nn.functional.cross_entropy(logits[batch.masked], batch.labels, reduction="sum").item()
        tokens += len(batch.masked)
    assert pretrained.held_out["loss"] == pytest.approx(loss / tokens, rel=1e-4)


def test_the_run_is_in_the_ledger_as_the_maker_of_its_model(pretrained):
    folder = Path(pretrained.output)
    (entry,), problems = read_runs(folder.parent)
    assert entry.run == pretrained
    assert entry.made == pretrained.encoder.sha256
    assert not problems
    (line,) = runs(RunsConfig(folder=folder.parent)).runs
    assert (line.command, line.bytes_on_disk) == ("pretrain", pretrained.bytes_on_disk)
    assert "architecture" in json.loads((folder / "run.json").read_text())


@pytest.mark.parametrize("kind", ["wordpiece", "unigram"])
def test_a_model_is_trained_further_with_its_tokenizer(pretrained, reviews, shape, tmp_path, kind):
    first = pretrain(options(shape, reviews, tmp_path / "first", tokenizer=kind, num_epochs=1))
    changes = {"config": None, "model": first.output, "num_epochs": 1, "learning_rate": 1e-3}
    further = PretrainConfig(
        corpus=(str(reviews),), model=first.output, output=tmp_path / "further", num_epochs=1,
        batch_size=8, max_length=16, learning_rate=1e-3, precision="fp32",
    )  # fmt: skip
    result = pretrain(further)
    assert changes["model"] == result.parent.source
    assert result.before == pytest.approx(first.held_out)
    assert result.held_out["loss"] < first.held_out["loss"]
    assert result.tokenizer.kind is None
    before, after = (Path(run.output) / "tokenizer.json" for run in (first, result))
    assert before.read_bytes() == after.read_bytes()


def test_the_head_of_an_encoder_that_has_none_is_new_and_said_to_be(tiny_model, reviews, tmp_path):
    result = pretrain(
        PretrainConfig(corpus=(str(reviews),), model=str(tiny_model), output=tmp_path / "out", num_epochs=1,
                       batch_size=16, max_length=16)
    )  # fmt: skip
    assert any("parameters of the head that guesses tokens" in note for note in result.notes)
    assert set(result.training.new_parameters) == {
        "head.bias", "head.dense.weight", "head.dense.bias", "head.norm.weight", "head.norm.bias"
    }  # fmt: skip


@pytest.mark.parametrize(
    "more",
    [
        'norm = "pre"\nposition_embedding = "rotary"\ngated = true\nactivation = "silu"\n',
        'norm = "pre"\nresidual = "attention"\n',
        'norm = "pre"\nresidual = "block_attention"\nresidual_block_size = 2\nwindow = 4\n',
    ],
    ids=["gated, rotary", "attention", "in blocks, local"],
)
def test_variants_are_pretrained_and_go_on_to_be_fine_tuned(reviews, tmp_path, more):
    (tmp_path / "own.toml").write_text(SHAPE + more)
    result = pretrain(options(tmp_path / "own.toml", reviews, tmp_path / "own"))
    assert result.held_out["loss"] < result.before["loss"]
    config = read_config(Path(result.output))
    described = result.architecture
    assert (described.norm, described.residual, described.gated) == (
        config.norm,
        config.residual,
        config.gated,
    )
    tuned = finetune(FinetuneConfig(model=result.output, data=str(reviews), output=tmp_path / "tuned",
                                    num_epochs=1, latency=False, max_length=12))  # fmt: skip
    assert tuned.parent.sha256 == result.encoder.sha256


def test_an_interrupted_run_resumes_to_the_same_model(shape, reviews, tmp_path, monkeypatch):
    monkeypatch.setattr(training, "SAVE_EVERY_S", 0.0)
    monkeypatch.setattr(training, "SAVE_SHARE", 0)
    monkeypatch.setattr(training, "READ_LOSS_EVERY", 1)
    whole = pretrain(options(shape, reviews, tmp_path / "whole"))

    class Killer:
        def training(self, progress):
            if progress.step == 7:
                raise Killed

        def __getattr__(self, name):
            return lambda *_: None

    with pytest.raises(Killed):
        pretrain(options(shape, reviews, tmp_path / "again"), Killer())
    with pytest.raises(ConfigError, match="an interrupted run is in"):
        pretrain(options(shape, reviews, tmp_path / "again"))
    with pytest.raises(ConfigError, match=r"mlm_probability: 0\.15 then, 0\.2 now"):
        pretrain(options(shape, reviews, tmp_path / "again", resume=True, mlm_probability=0.2))
    result = pretrain(options(shape, reviews, tmp_path / "again", resume=True))
    assert result.training.resumed_from_step is not None
    assert any(note.startswith("Going on after ") for note in result.notes)
    assert not any("random numbers" in note for note in result.notes)
    assert result.encoder.sha256 == whole.encoder.sha256
    again = pretrain(options(shape, reviews, tmp_path / "again", resume=True))
    assert again == result


@pytest.mark.parametrize(
    ("changes", "kind", "message"),
    [
        ({"corpus": ("nowhere.txt",)}, DataError, "nowhere.txt: no such file"),
        ({"max_length": 65}, ConfigError, "--max-length 65: .* has 64 positions"),
        ({"config": "huge"}, ConfigError, "--config huge: no such encoder"),
        ({"config": None, "model": "nowhere/at/all"}, CheckpointError, "nowhere/at/all: no such folder"),
        ({"corpus": ("nowhere.txt",), "config": "huge"}, EncError, "nowhere.txt[\\s\\S]*--config huge"),
    ],
)
def test_what_is_wrong_is_told_before_anything_is_read(shape, reviews, tmp_path, changes, kind, message):
    if "model" in changes:
        made = PretrainConfig(corpus=(str(reviews),), model=changes["model"], output=tmp_path / "o")
    else:
        made = options(shape, reviews, tmp_path / "o", **changes)
    with pytest.raises(kind, match=message):
        pretrain(made)
    assert not list(tmp_path.iterdir())


def test_a_tokenizer_without_a_mask_token_is_refused(tiny_model, reviews, tmp_path):
    folder = tmp_path / "no-mask"
    folder.mkdir()
    for path in tiny_model.iterdir():
        content = path.read_text(errors="surrogateescape") if path.suffix in (".json", ".txt") else None
        if content is None:
            (folder / path.name).write_bytes(path.read_bytes())
        else:
            (folder / path.name).write_text(content.replace("[MASK]", "[HIDE]"))
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    settings.pop("mask_token", None)
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    with pytest.raises(ConfigError, match="has no token to mask others with"):
        pretrain(PretrainConfig(corpus=(str(reviews),), model=str(folder), output=tmp_path / "o",
                                max_length=16))  # fmt: skip


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.mark.slow
@pytest.mark.parametrize("stop", [False, True])
def test_two_processes_do_what_one_does(shape, reviews, tmp_path, stop):
    """In torchrun's environment; with ``stop`` the two end in the middle, and go on."""
    root = Path(__file__).parents[2]
    one = pretrain(options(shape, reviews, tmp_path / "one", batch_size=7, num_epochs=2))
    words = {
        "--corpus": reviews, "--config": shape, "--output": tmp_path / "two", "--vocab-size": 60,
        "--num-epochs": 2, "--batch-size": 7, "--learning-rate": 1e-2, "--max-length": 16,
        "--precision": "fp32", "--threads": 1,
    }  # fmt: skip
    command = ["pretrain", *(str(word) for pair in words.items() for word in pair), "--json"]
    script = "import sys; from commands.app import run; sys.exit(run(sys.argv[1:]))"
    if stop:
        script = (
            "import sys, encoder.training as t\n"
            "t.SAVE_EVERY_S = 0.0; t.SAVE_SHARE = 0; t.READ_LOSS_EVERY = 1\n"
            "inner = t._Trainer._report\n"
            "def report(self, *rest):\n"
            "    inner(self, *rest)\n"
            "    if self.position.step == 9 and self.position.epoch == 1: sys.exit(9)\n"
            "t._Trainer._report = report\n"
        ) + script
        assert {code for code, *_ in run_two(script, command, root)} == {9}
        script, command = script.splitlines()[-1], [*command, "--resume"]
    (code, out, err), (second, nothing, silent) = run_two(script, command, root)
    assert (code, second) == (0, 0), err + silent
    assert nothing == "" and "Reading" not in silent and "loss" not in silent
    two = json.loads(out)
    assert two["processes"] == 2
    assert ("resumed_from_step" in two["training"]) and (two["training"]["resumed_from_step"] is None) != stop
    for ours, theirs in zip(one.training.epochs, two["training"]["epochs"], strict=True):
        assert theirs["loss"] == pytest.approx(ours.loss, rel=1e-4)
        assert theirs["validation"]["loss"] == pytest.approx(ours.validation["loss"], rel=1e-4)
    assert two["before"] == pytest.approx(one.before)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("two")] == ["two"]


def run_two(script, command, root):
    port = str(free_port())
    started = []
    for rank in range(2):
        places = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2",
                  "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "PYTHONPATH": str(root)}  # fmt: skip
        started.append(
            subprocess.Popen([sys.executable, "-c", script, *command], env=os.environ | places, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        )  # fmt: skip
    outputs = [process.communicate(timeout=300) for process in started]
    return [(process.returncode, *output) for process, output in zip(started, outputs, strict=True)]


@pytest.mark.slow
def test_torchrun_starts_it(shape, reviews, tmp_path):
    root = Path(__file__).parents[2]
    script = tmp_path / "enc"
    script.write_text(f"#!{sys.executable}\nfrom commands.app import main\nmain()\n")
    script.chmod(0o755)
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    words = ["pretrain", "--corpus", str(reviews), "--config", str(shape), "--output", str(tmp_path / "o")]
    done = subprocess.run(
        [*launcher, "--no-python", str(script), *words, "--max-length", "99"],
        env=os.environ | {"PYTHONPATH": str(root)}, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert done.stderr.count("--max-length 99: ") == 1  # one of the two processes says it
