"""Claims about what is shown of a pruning."""

from io import StringIO

import pytest
from rich.console import Console

from commands.before_and_after import say_speedup
from commands.importance_map import draw_map, ranks
from commands.pruning_report import show_pruning
from recipes.pruning_result import PrunedLayer, SearchTrial
from tests.results import make_pruning, make_result, make_speedup


def show(width=80, **changes):
    stream = StringIO()
    result = make_result(command="prune-heads", pruning=make_pruning(**changes))
    show_pruning(result, Console(file=stream, width=width))
    return stream.getvalue()


def plain(pruning):
    return [text.plain for text in draw_map(pruning)]


def test_map_has_a_rank_a_head_and_marks_what_went():
    assert plain(make_pruning()) == [
        "  layer   0   1   2   3    left",
        "      0  66 ×33 ×50  83    2/4",
        "      1   ·  ×0   · ×16    0/2",
        "  percent of the heads that matter less; × removed; · gone before",
    ]


def test_map_of_named_heads_has_no_ranks():
    layer = PrunedLayer(layer=0, before=2, after=1, heads_before=(0, 1), heads_after=(1,))
    assert plain(make_pruning(layers=(layer,)))[1:] == ["      0   ×   •    1/2", "  × removed"]


def test_map_of_sixteen_heads_fits_eighty_columns():
    heads = tuple(range(16))
    layers = tuple(
        PrunedLayer(
            layer=layer,
            before=16,
            after=0,
            heads_before=heads,
            heads_after=(),
            importance=tuple(float(layer * 16 + head) for head in heads),
        )
        for layer in range(24)
    )
    lines = plain(make_pruning(layers=layers))
    assert max(map(len, lines)) <= 80
    assert len(lines) == 26
    assert max(ranks(layers).values()) == 99


def test_neurons_and_layers_are_drawn_too():
    layer = PrunedLayer(layer=3, before=1536, after=512)
    line = plain(make_pruning(unit="neurons", layers=(layer,)))[1]
    assert line.endswith(" 512 of 1,536")
    assert (line.count("█"), line.count("░")) == (13, 27)
    gone = PrunedLayer(layer=3, before=1, after=0, importance=(0.25,))
    assert plain(make_pruning(unit="layers", layers=(gone,))) == [
        "  layer  3  × gone the loss rises by 0.2500 without it alone"
    ]


def test_a_gain_that_may_be_none_is_called_no_real_gain():
    assert (
        say_speedup(make_speedup(1.03, 0.98, 1.08, "inside the noise")) == "no real gain: 1.03× (0.98–1.08)"
    )
    assert say_speedup(make_speedup(1.2, 1.1, 1.3, "faster")) == "1.20× (1.10–1.30)"
    assert say_speedup(make_speedup(0.9, 0.85, 0.95, "slower")) == "slower: 0.90× (0.85–0.95)"


@pytest.mark.parametrize("width", [80, 200])
def test_report_says_what_was_done_and_what_it_cost(width):
    shown = show(width)
    assert max(map(len, shown.splitlines())) <= width
    flat = " ".join(shown.split())
    assert "4 of 6 heads removed (66.7%), chosen by the squared gradient" in flat
    assert "on 1,024 train rows" in flat
    assert "0.9600" in flat
    assert "-0.60 points" in flat
    assert "heads at random" in flat
    assert "0.7000–0.9000 in 3 draws" in flat
    assert "1.20× (1.10–1.30)" in flat
    assert "No test row had a part in choosing or repairing" in flat


def test_trials_of_a_search_are_told():
    trials = (SearchTrial(units=3, sparsity=0.5, drop=0.02), SearchTrial(units=1, sparsity=0.83, drop=None))
    flat = " ".join(show(trials=trials, max_drop=1.0).split())
    assert "Tried: 3 heads stay (50% gone): -2.00 points on validation." in flat
    assert "1 head stays (83% gone): not defined on validation" in flat
    assert "was decided on validation rows" in flat
