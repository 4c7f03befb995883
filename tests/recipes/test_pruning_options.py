"""Claims about which options of a pruning fit together."""

import pytest
from pydantic import ValidationError

from recipes.drop_layers_config import DropLayersConfig
from recipes.prune_heads_config import PruneHeadsConfig
from recipes.prune_neurons_config import PruneNeuronsConfig

BASE = {"model": "runs/a", "data": "news.csv", "output": "runs/b"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "nothing says how much to remove; give one of `sparsity`, `heads`, `keep`, or `max_drop`"),
        ({"sparsity": 0.5, "keep": "0:1"}, "`sparsity` and `keep` both say what stays"),
        ({"keep": "0:1", "steps": 2}, "`steps` has no say where `keep` names what stays"),
        ({"keep": "0:1", "max_drop": 1.0}, "`max_drop` has no say where `keep`"),
        ({"keep": "0:1", "method": "gradient"}, "`method` has no say where `keep`"),
        ({"keep": "0:1", "rows": 10}, "`rows` has no say where `keep`"),
        ({"heads": 5, "method": "magnitude", "rows": 10}, "`rows` has no say where `method` is magnitude"),
        (
            {"heads": 5, "method": "random", "targets": "model"},
            "`targets` has no say where `method` is random",
        ),
        ({"heads": 5, "scope": "layer", "normalize": True}, "`normalize` changes nothing"),
        ({"heads": 5, "repair": False, "repair_rows": 9}, "`repair_rows` is for `repair`"),
        ({"heads": 5, "batch_size": 9}, "`batch_size` is for the training that `recover_epochs`"),
        ({"heads": 5, "learning_rate": 1e-4}, "`learning_rate` is for the training"),
        ({"heads": 5, "recover_teacher": True}, "`recover_teacher` is for the training"),
        (
            {"heads": 5, "recover_epochs": 1, "temperature": 3.0},
            "`temperature` has no say without `recover_teacher`",
        ),
        ({"heads": 5, "recover_each_step": True}, "`recover_each_step` is for more than one of `steps`"),
        ({"heads": 5, "recover_each_step": True}, "`recover_each_step` needs `recover_epochs`, which is 0"),
        (
            {"max_drop": 1.0, "steps": 2, "recover_epochs": 1, "recover_each_step": True},
            "would train every number that `max_drop` tries",
        ),
        ({"heads": 5, "overwrite": True, "resume": True}, "`overwrite` starts again and `resume` continues"),
        ({"heads": 5, "text_column": "a", "text_pair_column": "a"}, "are both 'a'"),
    ],
)
def test_options_that_make_no_sense_together_are_refused(given, message):
    with pytest.raises(ValidationError) as told:
        PruneHeadsConfig(**BASE, **given)
    assert message in str(told.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "give `layers`, `keep`, `drop` or `max_drop`"),
        ({"layers": 2, "drop": (1,)}, "`layers` and `drop` both say which layers stay"),
        ({"drop": (1,), "max_drop": 1.0}, "`max_drop` has no say where the layers are named"),
        ({"keep": (1,), "strategy": "top"}, "`strategy` has no say where the layers are named"),
        ({"layers": 2, "strategy": "top", "rows": 9}, "`rows` has no say where `strategy` is top"),
    ],
)
def test_layers_have_rules_of_their_own(given, message):
    with pytest.raises(ValidationError) as told:
        DropLayersConfig(**BASE, **given)
    assert message in str(told.value)


@pytest.mark.parametrize(
    "given",
    [
        {"sparsity": 0.0},
        {"sparsity": 1.0},
        {"heads": 0, "max_drop": 0.0},
        {"max_drop": 1.0, "recover_epochs": 1},
        {"heads": 5, "steps": 3, "recover_epochs": 1, "recover_each_step": True, "max_drop": 1.0},
        {"keep": "0:1", "recover_epochs": 1, "learning_rate": 1e-4, "batch_size": 8},
    ],
)
def test_options_that_make_sense_are_taken(given):
    PruneHeadsConfig(**BASE, **given)


def test_neurons_are_asked_for_by_their_own_name():
    assert PruneNeuronsConfig(**BASE, neurons=7).given() == {
        "sparsity": False,
        "neurons": True,
        "keep": False,
    }
