"""Claims about what the page of a report says and draws of whatever runs there are."""

import pytest

from commands.app import run
from commands.report import write_report
from recipes.class_scores import ClassScores, PerClass
from recipes.pruning_result import PrunedLayer
from tests.commands.report_pages import figures_of, make_profile, make_training, section, write_all
from tests.results import (
    make_bench,
    make_latency,
    make_pruning,
    make_ratio,
    make_result,
    make_sweep,
)


def made_of(what):
    """One run alone, or two that hold next to nothing."""
    regression = {"main_metric": "pearson", "intervals": {}}
    return {
        "bench": [make_bench((("a", "a"), ("b", "b")), ratios=[make_ratio()])],
        "profile": [make_profile()],
        "evaluation": [make_result("e", "a", parent="a", command="evaluate", size=None, latency=())],
        "sweep alone": [make_result(sweep=make_sweep({3: [0.9]}))],
        "no latency": [make_result(latency=()), make_result("b", "b", parent="a", latency=())],
        "no score": [make_result("r", "r", scores={"test": {"pearson": None}}, **regression)],
        "regression": [
            make_result("r", "r", scores={"test": {"pearson": 0.9, "mse": 1.0}}, **regression),
            make_result("s", "s", parent="r", scores={"test": {"pearson": 0.8}}, **regression),
        ],
        "all heads named": [
            make_result(
                "b",
                "b",
                parent="a",
                pruning=make_pruning(
                    layers=(PrunedLayer(layer=0, before=2, after=1, heads_before=(0, 1), heads_after=(1,)),)
                ),
            )
        ],
    }[what]


@pytest.mark.parametrize(
    "what",
    [
        *("bench", "profile", "evaluation", "sweep alone"),
        *("no latency", "no score", "regression", "all heads named"),
    ],
)
def test_page_is_made_of_whatever_there_is(tmp_path, what):
    for number, one in enumerate(made_of(what)):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "run.json").write_text(one.to_json())
    page = write_report(tmp_path).read_text(encoding="utf-8")
    assert len(figures_of(page)) == page.count('class="plot"')
    assert run(["report", str(tmp_path), "--markdown"]) == 0


def test_of_many_trainings_those_of_the_line_in_the_headline_are_drawn(tmp_path):
    letters = "abcdefghij"
    for letter in letters:  # j is made of i, all others of an encoder from elsewhere
        parent = "i" if letter == "j" else "base"
        made = make_result(letter, letter, parent=parent, training=make_training())
        (tmp_path / letter).mkdir()
        (tmp_path / letter / "run.json").write_text(made.to_json())
    figures = figures_of(write_report(tmp_path).read_text(encoding="utf-8"))
    named = [{trace.get("name") for trace in figure["data"]} for figure in figures.values()]
    curves = next(names for names in named if {"i", "j"} <= names)
    assert len(curves) == 6


@pytest.mark.parametrize("latency", [(), (make_latency(),)])
def test_models_scored_on_other_rows_are_in_the_chart_and_said_to_be_no_comparison(tmp_path, latency):
    here = make_result("a", "a", latency=latency)
    other = here.data.model_copy(update={"fingerprint": "g", "source": "other.csv"})
    page = write_all(tmp_path, a=here, b=make_result("b", "b", parent="a", data=other, latency=()))
    steps = section(page, "steps")
    assert "Accuracy against size" in steps and "Grey: scored on other rows" in steps
    assert ": 3 b." in steps.split("Grey: ")[1]
    traces = [trace for figure in figures_of(page).values() for trace in figure["data"]]
    (grey,) = (trace for trace in traces if trace.get("name") == "on other rows")
    assert grey["text"] == ["3"]
    (front,) = (trace for trace in traces if trace.get("name") == "Pareto front")
    assert len(front["x"]) == 1


def test_one_model_alone_has_no_chart_and_that_is_said(tmp_path):
    page = write_all(tmp_path, a=make_result("a", "a"))
    assert "No chart: only one model here has both a score" in section(page, "steps")


def test_no_chart_is_without_points_and_why_is_said(tmp_path):
    """What has no number to show: a sweep without scores, classes without F1, a training without epochs."""
    nameless = ClassScores(label="x", rows=1, predicted=0, right=0, precision=None, recall=None, f1=None)
    classes = {"test": PerClass(classes=(nameless,) * 2, confusions=())}
    sweep = make_sweep({0: [0.9, 0.91], 2: [0.8, 0.82]})
    blank = tuple(one.model_copy(update={"mean": None, "scores": (None, None)}) for one in sweep.points)
    trained = make_training()
    trained = trained.model_copy(
        update={"epochs": tuple(one.model_copy(update={"validation": None}) for one in trained.epochs)}
    )
    page = write_all(
        tmp_path,
        a=make_result("a", "a", training=trained, per_class=classes),
        b=make_result("b", "b", sweep=sweep.model_copy(update={"points": blank})),
    )
    assert "No chart: F1 is defined for no class." in section(page, "classes")
    assert "No chart: the score is defined at no point." in section(page, "freezing")
    assert "No validation score was kept" in section(page, "training")
    for figure in figures_of(page).values():
        assert any(trace.get("z") or trace["x"] for trace in figure["data"])
    assert page.count('class="plot"') == len(figures_of(page))


def test_card_table_and_markdown_have_the_measured_p50_and_say_where_the_machine_was_busy(tmp_path, capsys):
    busy = make_latency(0.12, cpu_wait=0.6)
    made = {
        "a": make_result("a", "a", latency=(make_latency(7.62),)),
        "b": make_result("b", "b", parent="a", latency=(busy,), pruning=make_pruning()),
    }
    for name, one in made.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.json").write_text(one.to_json())
    assert run(["report", str(tmp_path), "--markdown"]) == 0
    assert "| 0.12, busy | 1.20× (1.10–1.30), busy |" in capsys.readouterr().out
    assert run(["report", str(tmp_path), "--output", str(tmp_path / "page.html")]) == 0
    page = (tmp_path / "page.html").read_text()
    assert "0.12 <small>ms</small>" in page and "was 7.62 ms in another run" in page
    assert "on a busy machine" in page and "0.12 *" in page
