"""Claims about recipes: what they may say, and how mistakes are told."""

import importlib

import pytest

from encoder.errors import ConfigError
from recipes.chain import given_options
from recipes.chain_reading import read_chain
from recipes.chain_shapes import SHAPES
from recipes.chain_steps import KINDS
from recipes.plan_time import ESTIMATES
from recipes.recipe_files import find_recipe, preset_names
from recipes.run import open_chain
from recipes.run_config import RunConfig


@pytest.fixture
def write(tmp_path):
    def write(text):
        file = tmp_path / "mine.toml"
        file.write_text(text)
        return str(file)

    return write


def step(command, **values):
    lines = [
        f"{name} = {value!r}".replace("True", "true").replace("False", "false")
        for name, value in values.items()
    ]
    return "\n".join(["[[steps]]", f'command = "{command}"', *lines, ""])


HEAD = '[chain]\nmodel = "m"\ndata = "d"\n'


def read(file, *settings):
    chain, problems = read_chain(file, settings=settings)
    assert problems == []
    return chain


def test_a_step_takes_the_last_model_that_it_can(write):
    chain = read(
        write(
            HEAD
            + step("finetune")
            + step("evaluate")
            + step("freeze-sweep", keep="none")
            + step("distill", layers=2)
            + step("export")
            + step("evaluate")
            + step("profile")
            + step("bench")
        )
    )
    assert [one.models for one in chain.steps] == [
        ("m",), ("01-finetune",), ("01-finetune",), ("01-finetune",), ("04-distill",), ("05-export",),
        ("04-distill",), ("05-export",),
    ]  # fmt: skip
    assert [one.folder for one in chain.steps][5:] == ["06-evaluate-2", "07-profile", "08-bench"]


def test_a_step_can_name_the_models_it_takes(write):
    chain = read(
        write(
            HEAD
            + step("finetune", name="base")
            + step("drop-layers", layers=2)
            + step("distill", model="@base", layers=2)
            + step("bench", models=["@base", "@drop-layers", "@distill", "elsewhere"])
            + step("evaluate", model="@start", against="@base")
        )
    )
    assert chain.steps[2].models == ("01-base",)
    assert chain.steps[3].models == ("01-base", "02-drop-layers", "03-distill", "elsewhere")
    assert chain.steps[4].models == ("m",) and chain.steps[4].options.against == "01-base"


def test_what_the_chain_says_goes_to_all_steps_that_have_it(write):
    text = '[chain]\nmodel = "m"\ndata = "d.csv"\nseed = 7\nlabel_column = "topic"\n'
    chain = read(
        write(text + step("finetune") + step("distill", layers=2, seed=8) + step("export")), "seed=9"
    )
    finetune, distill, export = (one.options for one in chain.steps)
    assert (finetune.seed, distill.seed) == (9, 8)
    assert export.label_column == finetune.label_column == "topic"
    assert given_options(chain.steps[1]) == {"layers": 2, "seed": 8, "label_column": "topic"}


def test_settings_take_the_place_of_values_and_take_them_away(write):
    text = HEAD + step("finetune", num_epochs=2, freeze=["a.*"]) + step("bench", runtimes=["torch-fp32"])
    settings = (
        "finetune.num-epochs=5",
        "finetune.freeze=b.*, c",
        "bench.runtimes=",
        "bench.models=@start,@finetune",
    )
    finetune, bench = read(write(text), *settings).steps
    assert (finetune.options.num_epochs, finetune.options.freeze) == (5, ("b.*", "c"))
    assert bench.options.runtimes == ("torch-fp32", "onnx-fp32")
    assert bench.models == ("m", "01-finetune")


def test_all_mistakes_of_a_recipe_are_told_at_once_with_their_step(write, tiny_model, reviews):
    file = write(
        f'title = "x"\n[chain]\nmodle = "m"\nmodel = "{tiny_model}"\ndata = "{reviews}"\nseed = -1\n'
        + step("finetune", epochs=3, output="here")
        + step("distill", layers=8)
        + step("prune-heads", model="@finetun")
        + step("expotr", precision="int8")
        + step("export", precision="int9", name="finetune")
    )
    with pytest.raises(ConfigError) as caught:
        open_chain(RunConfig(recipe=file, set=("distil.layers=2", "sed=1", "finetune.x=1", "words")))
    lines = [line.removeprefix(f"{file}: ") for line in str(caught.value).splitlines()]
    assert set(lines) == {
        "unknown key 'title'; expected [chain] and [[steps]]",
        "[chain] unknown key 'modle'; did you mean 'model'?",
        "[chain] seed is -1; expected a whole number at least 0 and below 4,294,967,296",
        "step 4: command is 'expotr'; expected one of " + ", ".join(KINDS) + "; did you mean 'export'?",
        "step 5: name is 'finetune', as that of step 1",
        "step 1 (finetune): unknown key 'epochs'; did you mean 'num_epochs'?",
        "step 1 (finetune): 'output' is decided by enc run; leave it out",
        next(line for line in lines if "--set finetune.x" in line),
        "step 2 (distill): layers 8: 01-finetune has 3 layers",
        "step 3 (prune-heads): model '@finetun': no step before it is called so; did you mean 'finetune'?",
        "step 3 (prune-heads): nothing says how much to remove; give one of sparsity, heads, keep, or "
        "max_drop",
        "step 5 (finetune, export): precision is 'int9'; expected one of fp32, fp16, int8; did you mean "
        "'int8'?",
        "--set distil.layers=2: no step 'distil'; did you mean 'distill'?",
        "--set sed: the chain has no such option; did you mean 'seed'?",
        "--set 'words': expected STEP.OPTION=VALUE, as distill.layers=3",
    }


def problems_of(file):
    with pytest.raises(ConfigError) as caught:
        open_chain(RunConfig(recipe=file))
    return [line.removeprefix(f"{file}: ") for line in str(caught.value).splitlines()]


def test_a_step_that_is_not_there_is_one_mistake(write, tiny_model, reviews):
    head = f'[chain]\nmodel = "{tiny_model}"\ndata = "{reviews}"\n'
    assert problems_of(write(head + step("finetune") + step("export", model="@nowhere"))) == [
        "step 2 (export): model '@nowhere': no step before it is called so; there are @start, @finetune"
    ]


def test_a_misspelt_key_is_not_missing_as_well(write, tiny_model, reviews):
    head = f'[chain]\nmodel = "{tiny_model}"\ndata = "{reviews}"\n'
    steps = step("finetune") + step("prune-heads", sparsty=0.3) + step("distill", layer=2, seed=-1)
    assert problems_of(write(head + steps)) == [
        "step 2 (prune-heads): unknown key 'sparsty'; did you mean 'sparsity'?",
        "step 3 (distill): unknown key 'layer'; did you mean 'layers'?",
        "step 3 (distill): seed is -1; expected a whole number at least 0 and below 4,294,967,296",
    ]


def test_a_wrong_step_does_not_hide_what_is_wrong_with_layers_behind_it(write, tiny_model, reviews):
    head = f'[chain]\nmodel = "{tiny_model}"\ndata = "{reviews}"\n'
    steps = step("finetune") + step("prune-heads", sparsity=1.5) + step("distill", layers=8)
    told = problems_of(write(head + steps))
    assert "step 3 (distill): layers 8: 02-prune-heads has 3 layers" in told
    assert any(line.startswith("step 2 (prune-heads): sparsity is 1.5") for line in told)
    steps = step("finetune", freeze_layers=3, train_last=2) + step("drop-layers", layers=99)
    told = problems_of(write(head + steps))
    assert any("freeze_layers" in line for line in told)
    assert "step 2 (drop-layers): layers 99: 01-finetune has 3 layers" in told


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ("", "no steps; expected [[steps]] with command = 'finetune'"),
        (step("distill", layers=2), "takes a fine-tuned model, and {model} is an encoder without a"),
        (step("finetune", max_length=100), "max_length 100: {model} holds 64 tokens at most"),
        (step("finetune") + step("export") + step("distill", layers=1, model="@export"), "is a graph, which"),
        (step("finetune") + step("evaluate") + step("bench", models=["@evaluate"]), "only measures"),
        (step("finetune") + step("prune-heads", heads=99), "heads 99: 01-finetune has 12 heads"),
        (step("finetune") + step("prune-heads", sparsity=1), "sparsity 1 would leave no heads in any"),
        (step("freeze-sweep", points=[0, 9]), "points 9: {model} has 3 layers"),
        (step("finetune", freeze_layers=4), "freeze_layers 4: {model} has 3 layers"),
        (step("finetune") + step("drop-layers", layers=1) + step("distill", layers=2), "has 1 layer"),
        (step("finetune") + step("distill", layers=1, unlabeled="no.txt"), "unlabeled no.txt: no such file"),
        (step("finetune", data="no.csv"), "no.csv: no such file or folder"),
        (step("finetune", name="Start"), "name is 'Start'; expected small letters"),
    ],
)  # fmt: skip
def test_what_cannot_work_is_told_before_torch_is_loaded(write, tiny_model, reviews, steps, message):
    file = write(f'[chain]\nmodel = "{tiny_model}"\ndata = "{reviews}"\n{steps}')
    with pytest.raises(ConfigError) as caught:
        open_chain(RunConfig(recipe=file))
    assert message.format(model=tiny_model) in str(caught.value)


def test_a_step_before_can_be_the_student(write, tiny_model, reviews):
    text = f'[chain]\nmodel = "{tiny_model}"\ndata = "{reviews}"\n'
    text += step("finetune") + step("drop-layers", layers=1)
    text += step("distill", model="@finetune", student="@drop-layers")
    chain, _ = open_chain(RunConfig(recipe=write(text)))
    assert chain.steps[2].options.student == "02-drop-layers"
    with pytest.raises(ConfigError) as caught:
        open_chain(RunConfig(recipe=write(text + step("drop-layers", layers=2))))
    assert str(caught.value).endswith(
        "step 4 (drop-layers-2, enc drop-layers): layers 2: 03-distill has 1 layer"
    )


def test_mistakes_about_data_are_told_with_all_others(write, tiny_model, reviews, tmp_path):
    """Also those that only a later step would run into, and each once."""
    (tmp_path / "other.csv").write_text("text,topic\nfine,pos\nbad,bda\n")
    (tmp_path / "more.csv").write_text("body,x\nfine,1\n")
    file = write(
        f'[chain]\nmodel = "{tiny_model}"\ndata = "{reviews}"\nlabel_column = "lable"\n'
        + step("finetune", epochs=3)
        + step("distill", layers=8, label_column="label", unlabeled=str(tmp_path / "more.csv"))
        + step("evaluate", data=str(tmp_path / "other.csv"), label_column="topic")
        + step("prune-heads", sparsity=0.5)
    )
    with pytest.raises(ConfigError) as caught:
        open_chain(RunConfig(recipe=file))
    lines = [line.removeprefix(f"{file}: ") for line in str(caught.value).splitlines()]
    assert "step 1 (finetune): unknown key 'epochs'; did you mean 'num_epochs'?" in lines
    assert "step 2 (distill): layers 8: 01-finetune has 3 layers" in lines
    told = f"{reviews / 'train.csv'}: no column 'lable' (label_column); did you mean 'label'?"
    assert lines.count(told) == 1 and "the columns are: text, label" in lines
    assert any(line.startswith("step 2 (distill): unlabeled: ") for line in lines)
    assert "the columns are: body, x" in lines


def test_labels_that_an_earlier_step_does_not_learn_are_told(write, tiny_model, reviews, tmp_path):
    (tmp_path / "other.csv").write_text("text,label\nfine,pos\nbad,bda\n")
    file = write(
        f'[chain]\nmodel = "{tiny_model}"\ndata = "{reviews}"\n'
        + step("finetune")
        + step("evaluate", data=str(tmp_path / "other.csv"))
    )
    with pytest.raises(ConfigError, match=r"step 2 \(evaluate\): .*other\.csv:3: label 'bda' is none of the"):
        open_chain(RunConfig(recipe=file))


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        (step("finetune", best_metric="f1"), "step 1 (finetune): best_metric f1: a single-label task has"),
        (step("finetune") + step("distill", layers=1, data="{only_test}"), "has no training rows; it has"),
        (step("finetune") + step("export", prune_vocab="{empty}"), "prune_vocab: {empty}: the file is empty"),
        (step("finetune") + step("distill", layers=1, device="cuda"), "step 2 (distill): device cuda: no"),
    ],
)  # fmt: skip
def test_what_data_and_machine_do_not_have_is_told(
    write, tiny_model, reviews, tmp_path, monkeypatch, steps, message
):
    monkeypatch.setattr("compress.machine.list_gpus", list)
    (tmp_path / "only").mkdir()
    (tmp_path / "only" / "test.csv").write_text((reviews / "test.csv").read_text())
    (tmp_path / "empty.txt").touch()
    places = {"{only_test}": str(tmp_path / "only"), "{empty}": str(tmp_path / "empty.txt")}
    for name, path in places.items():
        steps, message = steps.replace(name, path), message.replace(name, path)
    file = write(f'[chain]\nmodel = "{tiny_model}"\ndata = "{reviews}"\n{steps}')
    with pytest.raises(ConfigError) as caught:
        open_chain(RunConfig(recipe=file))
    assert message in str(caught.value)


def test_large_data_are_left_to_the_first_step_but_for_what_it_would_not_tell(
    write, tiny_model, reviews, monkeypatch
):
    monkeypatch.setattr("recipes.first_look.LOOKED_THROUGH_BYTES", 0)
    head = f'[chain]\nmodel = "{tiny_model}"\ndata = "{reviews}"\n'
    open_chain(RunConfig(recipe=write(head + 'label_column = "lable"\n' + step("finetune"))))
    with pytest.raises(ConfigError, match=r"step 2 \(evaluate\): .*no column 'lable'"):
        open_chain(RunConfig(recipe=write(head + step("finetune") + step("evaluate", label_column="lable"))))


def test_a_missing_model_and_missing_data_are_told_once(write):
    with pytest.raises(ConfigError) as caught:
        open_chain(RunConfig(recipe=write(step("finetune") + step("distill", layers=2))))
    assert [line.partition(": ")[2] for line in str(caught.value).splitlines()] == [
        "names no model; give --model MODEL",
        "names no data; give --data DATA",
    ]


def test_a_recipe_that_is_not_there_is_told_with_what_there_is():
    with pytest.raises(ConfigError, match=r"quikstart: no such recipe; did you mean 'quickstart'\?; enc has"):
        open_chain(RunConfig(recipe="quikstart"))
    with pytest.raises(ConfigError, match=r"none\.toml: cannot be read"):
        open_chain(RunConfig(recipe="none.toml"))


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_opens_with_the_command_that_runs_it(name):
    found = find_recipe(name)
    assert found.opening.startswith(f"enc run {name} ")
    assert found.values["chain"]["description"]


def test_each_kind_of_step_is_one_command_with_its_recipe():
    for command, kind in KINDS.items():
        module, function = kind.recipe.split(":")
        assert function == command.replace("-", "_")
        assert callable(getattr(importlib.import_module(module), function))
        assert kind.model_field in kind.options.model_fields


def test_a_step_may_lose_a_share_of_what_the_chain_may(write):
    text = (
        '[chain]\nmodel = "m"\ndata = "d"\nmax_drop = 2\n' + step("finetune") + step("export", max_drop="25%")
    )
    assert read(write(text)).steps[1].options.max_drop == 0.5
    assert read(write(text), "max_drop=1").steps[1].options.max_drop == 0.25
    assert read(write(text), "export.max_drop=3").steps[1].options.max_drop == 3
    _, problems = read_chain(write(text), settings=["max_drop="])
    assert problems[0].endswith("max_drop is '25%' of the chain's max_drop, and that is not given")


def test_texts_can_be_those_of_the_data(write, reviews):
    def vocabulary(data):
        text = (
            f'[chain]\nmodel = "m"\ndata = "{data}"\n'
            + step("finetune")
            + step("export", prune_vocab="@data")
        )
        chain, problems = read_chain(write(text))
        return chain.steps[1].options.prune_vocab, problems

    assert vocabulary(reviews) == (reviews / "train.csv", [])
    assert vocabulary(reviews / "test.csv") == (reviews / "test.csv", [])
    assert "prune_vocab is '@data', and bbc-news is no file" in vocabulary("bbc-news")[1][0]


def test_every_kind_of_step_has_a_shape_and_a_time_beforehand():
    assert set(SHAPES) == set(ESTIMATES) == set(KINDS)


def test_a_compression_takes_what_was_trained_and_makes_what_can_only_run(write):
    text = HEAD + step("finetune") + step("compress", target_speedup=2) + step("evaluate") + step("profile")
    assert [one.models for one in read(write(text)).steps[1:]] == [
        ("01-finetune",),
        ("02-compress",),
        ("01-finetune",),
    ]
