"""Claims about options made from a config."""

from pathlib import Path

import pytest
from typer.main import get_command

from commands.app import app
from commands.options import build_config
from encoder.errors import ConfigError
from recipes.bench_config import BenchConfig
from recipes.evaluate_config import EvaluateConfig
from recipes.finetune_config import FinetuneConfig
from recipes.freeze_sweep_config import FreezeSweepConfig
from recipes.predict_config import PredictConfig
from recipes.profile_config import ProfileConfig
from recipes.run_config import RunConfig
from recipes.runs_config import RunsConfig

NEEDED = {"model": "m", "data": "d", "output": "o"}


@pytest.mark.parametrize(
    ("command", "config"),
    [
        ("finetune", FinetuneConfig),
        ("freeze-sweep", FreezeSweepConfig),
        ("evaluate", EvaluateConfig),
        ("predict", PredictConfig),
        ("bench", BenchConfig),
        ("profile", ProfileConfig),
        ("run", RunConfig),
        ("runs", RunsConfig),
    ],
)
def test_every_field_is_an_option_with_a_sentence_and_a_panel(command, config):
    parameters = {parameter.name: parameter for parameter in get_command(app).commands[command].params}
    for name, field in config.model_fields.items():
        assert name in parameters
        assert field.description.endswith("."), name
        assert parameters[name].rich_help_panel, name
        assert parameters[name].help.startswith(field.description)


def test_typed_text_becomes_typed_values():
    given = {"num_epochs": "5", "learning_rate": "3e-5", "freeze": ["a.*", "b"], "latency": False}
    config = build_config(FinetuneConfig, NEEDED | given)
    assert (config.num_epochs, config.learning_rate, config.freeze) == (5, 3e-5, ("a.*", "b"))
    assert config.latency is False
    assert config.output == Path("o")


def test_all_mistakes_are_told_at_once_in_the_words_they_were_typed_in(tmp_path):
    file = tmp_path / "train.toml"
    file.write_text('num_epoch = 2\nbatch_size = "x"\nschedule = "liner"\n[training]\nseed = 1\n')
    with pytest.raises(ConfigError) as caught:
        build_config(FinetuneConfig, {"warmup_ratio": "2", "model": "m", "data": "d"}, file)
    assert set(str(caught.value).splitlines()) == {
        f"{file}: unknown key 'num_epoch'; did you mean 'num_epochs'?",
        next(line for line in str(caught.value).splitlines() if "'training'" in line),
        f"{file}: batch_size is 'x'; expected a whole number above 0",
        f"{file}: schedule is 'liner'; expected one of linear, cosine, constant; did you mean 'linear'?",
        "--warmup-ratio is '2'; expected a number at least 0 and at most 1",
        next(line for line in str(caught.value).splitlines() if line.startswith("--output is missing")),
    }


def test_command_line_wins_over_the_file(tmp_path):
    file = tmp_path / "train.toml"
    file.write_text("num_epochs = 7\nbatch_size = 4\nfreeze = ['a', 'b']\noverwrite = true\n")
    config = build_config(FinetuneConfig, NEEDED | {"num_epochs": "2"}, file)
    assert (config.num_epochs, config.batch_size, config.freeze) == (2, 4, ("a", "b"))
    assert config.overwrite is True


@pytest.mark.parametrize(
    ("text", "message"),
    [("num_epochs = ", "not a TOML file"), ("learning-rate = 1e-5", "did you mean 'learning_rate'")],
)
def test_file_that_is_wrong_says_so(tmp_path, text, message):
    file = tmp_path / "train.toml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=message):
        build_config(FinetuneConfig, NEEDED, file)


def test_file_that_is_not_there_says_so():
    with pytest.raises(ConfigError, match=r"--config nowhere.toml: cannot be read: No such file"):
        build_config(FinetuneConfig, NEEDED, Path("nowhere.toml"))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"freeze_layers": "1", "train_last": "1"}, "--freeze-layers and --train-last both say"),
        ({"train_last": "1", "train_classifier_only": True}, "--train-last and --train-classifier-only"),
        ({"overwrite": True, "resume": True}, "--overwrite starts again and --resume continues"),
        ({"text_column": "a", "text_pair_column": "a"}, "--text-column and --text-pair-column are both 'a'"),
        ({"label_separator": ",", "task": "regression"}, "--label-separator is for several labels a row"),
    ],
)
def test_options_that_do_not_fit_together_are_refused(given, message):
    with pytest.raises(ConfigError, match=message):
        build_config(FinetuneConfig, NEEDED | given)


@pytest.mark.parametrize(
    ("config", "given", "message"),
    [
        (PredictConfig, {"texts": ["a"], "text_column": "a"}, "--text-column is 'a', but there is no table"),
        (PredictConfig, {"text_pair_column": "a"}, "--text-pair-column is 'a', but there is no table"),
        (
            PredictConfig,
            {"input": "x.txt", "text_column": "a"},
            "--text-column is 'a', but x.txt is no table",
        ),
        (
            PredictConfig,
            {"texts": ["a"], "encoding": "cp1252"},
            "--encoding is 'cp1252', but there is no file",
        ),
        (PredictConfig, {"texts": ["a"], "input": "x.csv"}, "texts were given and --input x.csv too"),
        (BenchConfig, {"text_column": "a"}, "--text-column is 'a', but there is no table"),
        (ProfileConfig, {"data": "x.txt", "text_column": "a"}, "but x.txt is no table"),
        (ProfileConfig, {"encoding": "cp1252"}, "--encoding is 'cp1252', but there is no --data"),
        (
            EvaluateConfig,
            {"data": "d", "text_column": "a", "text_pair_column": "a"},
            "--text-column and --text-pair-column are both 'a'",
        ),
    ],
)
def test_options_without_effect_are_refused(config, given, message):
    named = {"models": ["m"]} if config is BenchConfig else {"model": "m"}
    with pytest.raises(ConfigError, match=message):
        build_config(config, named | given)


def test_other_tools_names_are_answered_with_ours(tmp_path):
    file = tmp_path / "train.toml"
    file.write_text("lr = 1e-5\nnum_train_epochs = 3\nmax_seq_length = 128\n")
    with pytest.raises(ConfigError) as caught:
        build_config(FinetuneConfig, NEEDED, file)
    for name in ("learning_rate", "num_epochs", "max_length"):
        assert f"did you mean {name!r}?" in str(caught.value)


def test_lists_are_typed_with_commas():
    given = {"models": ["a", "b"], "batch_sizes": "1, 8,8", "runtimes": "onnx-int8,torch-fp32"}
    config = build_config(BenchConfig, given)
    assert config.models == ("a", "b")
    assert config.batch_sizes == (1, 8)
    assert config.runtimes == ("onnx-int8", "torch-fp32")
    assert config.sequence_lengths == ()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"batch_sizes": "1,x"}, "--batch-sizes is 'x'; expected whole numbers above 0, with commas between"),
        ({"batch_sizes": "0"}, "--batch-sizes is '0'; expected whole numbers above 0, with commas between"),
        ({"batch_sizes": ","}, "--batch-sizes is (); expected whole numbers above 0, with commas between"),
        (
            {"runtimes": "onx-int8"},
            "--runtimes is 'onx-int8'; expected names out of torch-fp32, torch-bf16, onnx-fp32, onnx-int8, "
            "with commas between; did you mean 'onnx-int8'?",
        ),
    ],
)
def test_item_of_a_list_that_is_wrong_is_told_once(given, message):
    with pytest.raises(ConfigError) as caught:
        build_config(BenchConfig, {"models": ["a"]} | given)
    assert str(caught.value) == message
