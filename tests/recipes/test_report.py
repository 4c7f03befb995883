"""Claims about a report as plain data."""

import re

import pytest

from compress.uncertainty import McNemar, ScoreDifference, ScoreInterval
from encoder.errors import ConfigError
from recipes.class_scores import ClassScores, PerClass
from recipes.encoders import EncoderResult
from recipes.ledger import LedgerRun, make_tree
from recipes.observer import Recorder, Silent
from recipes.pretrain_result import PretrainResult
from recipes.report import report
from recipes.report_config import ReportConfig
from recipes.report_models import find_models
from recipes.report_speed import Speeds
from recipes.report_steps import make_steps
from recipes.result import Against, Run
from tests.results import (
    make_compress,
    make_latency,
    make_pruning,
    make_result,
    make_size,
    make_speedup,
    make_sweep,
)


@pytest.fixture
def reported(tmp_path):
    """Write runs by the name of their folders, and report on them."""

    def reported(**made):
        for name, run in made.items():
            (tmp_path / name).mkdir()
            (tmp_path / name / "run.json").write_text(run.to_json())
        return report(ReportConfig(folder=tmp_path))

    return reported


def against(difference, low, high, p_value, verdict, sha256="a"):
    return Against(
        source="runs/a",
        sha256=sha256,
        split="test",
        scores={"accuracy": 0.954},
        difference=ScoreDifference(metric="accuracy", difference=difference, low=low, high=high, rows=500),
        mcnemar=McNemar(only_first=1, only_second=2, p_value=p_value),
        verdict=verdict,
    )


def scored(value, half=0.02):
    interval = ScoreInterval(metric="accuracy", score=value, low=value - half, high=value + half, rows=500)
    return {"scores": {"test": {"accuracy": value}}, "intervals": {"test": interval}}


def pruned(name="b", parent="a", speedup=None, **changes):
    speedup = speedup or make_speedup(1.2, 1.1, 1.3)
    values = {
        "command": "prune-heads",
        "pruning": make_pruning(speedups=(speedup,)),
        "latency": (make_latency(12.5),),
        "size": make_size(45_000_000),
    }
    return make_result(name, name, parent=parent, **values | changes)


def test_gain_that_was_measured_in_turns_is_claimed_with_its_interval(reported):
    found = reported(a=make_result("a", "a"), b=pruned())
    assert found.headline.sentence == (
        "6 layers, 2 of 6 heads: 1.2× as fast as the fine-tuned model at batch 1 (1.10–1.30), "
        "the same accuracy, 45 MB instead of 90 MB"
    )


def test_gain_inside_the_noise_is_not_called_one(reported):
    found = reported(a=make_result("a", "a"), b=pruned(speedup=make_speedup(1.2, 0.9, 1.6)))
    assert found.headline.speed.startswith(
        "not measurably faster than the fine-tuned model at batch 1 (1.20×"
    )


def test_latencies_of_separate_runs_are_said_to_be_that(reported):
    found = reported(
        a=make_result("a", "a"), b=make_result("b", "b", parent="a", latency=(make_latency(6.25),))
    )
    assert found.headline.speed == "about 2.0× as fast as the fine-tuned model at batch 1, measured apart"


def test_gain_of_a_busy_machine_is_not_claimed_without_saying_so(reported):
    busy = make_latency(12.5, cpu_wait=0.5)
    found = reported(a=make_result("a", "a"), b=pruned(latency=(busy,)))
    assert found.headline.speed.endswith("at batch 1 (1.10–1.30, on a busy machine)")
    assert any("may be too good" in remark for remark in found.headline.remarks)
    assert any("quiet" in one.what and "enc bench" in one.command for one in found.missing)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            against(-0.004, -0.012, 0.004, 0.5, "no difference from runs/a that 500 rows can show"),
            "0.4 points lost (not distinguishable from none)",
        ),
        (
            against(-0.04, -0.06, -0.02, 0.001, "worse than runs/a, more than chance explains on 500 rows"),
            "4.0 points lost (more than chance explains)",
        ),
        (
            against(0.01, 0.002, 0.018, 0.01, "better than runs/a, more than chance explains on 500 rows"),
            "1.0 point gained (more than chance explains)",
        ),
    ],
)
def test_change_of_the_score_is_told_as_the_test_on_the_same_rows_allows(reported, change, words):
    found = reported(a=make_result("a", "a"), b=pruned(against=change))
    assert found.headline.score == words
    assert found.steps[2].verdict.claim == change.verdict.replace("runs/a", "a")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0.95, "0.4 points lost (within the intervals)"),
        (0.8, "15.4 points lost (more than the intervals explain)"),
    ],
)
def test_scores_that_were_not_compared_row_by_row_are_told_by_their_intervals(reported, value, words):
    found = reported(
        a=make_result("a", "a", **scored(0.954)),
        b=pruned(),
        c=pruned("c", "b", **scored(value)),
    )
    assert found.headline.score == words
    commands = [one.command for one in found.missing]
    assert any(re.search(r"enc evaluate \S+/c --data news.csv --against \S+/a ", line) for line in commands)


def made_again(name, p50_ms, ratio, **changes):
    """A run of enc prune-heads in the folder ``name`` that made the model ``b`` of ``a``."""
    speedup = make_speedup(ratio, ratio * 0.9, ratio * 1.1)
    before = make_latency(p50_ms * ratio, **changes)
    pruning = make_pruning(speedups=(speedup,), latency_before=(before,))
    latency = (make_latency(p50_ms, **changes),)
    return pruned("b", speedup=speedup, latency=latency, pruning=pruning, output=name)


def test_each_of_two_runs_that_made_the_same_model_shows_what_it_measured(reported):
    found = reported(
        a=make_result("a", "a"),
        b=made_again("b", 0.12, 22.6, cpu_wait=0.6),
        x=made_again("x", 0.08, 280.6, threads=2),
        y=pruned("c", "a"),
    )
    shown = {step.name: step for step in found.steps}
    assert (shown["b"].p50_ms, shown["b"].p50_elsewhere, shown["b"].disturbed) == (0.12, None, True)
    assert (shown["b"].gain.ratio, shown["b"].gain.threads, shown["b"].gain.disturbed) == (22.6, 16, True)
    assert (shown["x"].p50_ms, shown["x"].p50_elsewhere, shown["x"].disturbed) == (0.08, "2 threads", False)
    assert shown["x"].gain.ratio == pytest.approx(280.6)
    assert (shown["x"].gain.threads, shown["x"].gain.disturbed) == (2, False)
    timed = {(part.name, part.latency.p50_ms) for part in found.latencies}
    assert {("b", 0.12), ("x", 0.08)} <= timed
    assert not {("b", 0.08), ("x", 0.12)} & timed


def test_what_a_model_takes_does_not_change_with_runs_that_have_nothing_to_do_with_it(reported):
    one = made_again("b", 0.12, 22.6)
    alone = reported(a=make_result("a", "a"), b=one)
    more = reported(c=pruned("c", "a", latency=(make_latency(3.0),)), d=pruned("d", "a"))
    for found in (alone, more):
        first, step = (next(one for one in found.steps if one.name == name) for name in "ab")
        assert (step.p50_ms, step.gain.ratio) == (0.12, 22.6)
        assert step.placed_ms == pytest.approx(first.placed_ms / 22.6)


def test_headline_is_about_the_end_of_the_longest_line(reported):
    found = reported(
        a=make_result("a", "a"), z=make_result("z", "z", parent="other"), b=pruned(), c=pruned("c", "b")
    )
    assert [found.step(number).name for number in (found.headline.first, found.headline.step)] == ["a", "c"]
    assert found.step(found.headline.step).gain.how == "step by step"


def test_front_holds_what_no_other_step_beats(reported):
    scores = {"b": (0.95, 10.0), "c": (0.96, 20.0), "d": (0.93, 5.0), "e": (0.94, 11.0)}
    runs = {
        name: make_result(name, name, parent="a", latency=(make_latency(ms),), **scored(value))
        for name, (value, ms) in scores.items()
    }
    found = reported(a=make_result("a", "a", latency=(make_latency(25.0),), **scored(0.9)), **runs)
    assert {step.name for step in found.steps if step.front} == {"b", "c", "d"}


def test_sweep_whose_model_was_not_kept_is_no_end_and_not_on_the_front(reported):
    sweep = make_sweep({0: [0.9, 0.91], 2: [0.8, 0.82]})
    found = reported(
        a=make_result("a", "a", latency=(make_latency(25.0),), **scored(0.9)),
        z=make_result("z", "z", sweep=sweep, config={"keep": "none"}, **scored(0.99)),
    )
    assert found.step(found.headline.step).name == "a"
    assert {step.name for step in found.steps if step.front} == {"a"}
    assert found.steps[2].what == "fine-tuned, 0 layers frozen, not kept"


def test_gate_that_was_not_met_is_told(reported):
    found = reported(
        a=make_result("a", "a"), b=pruned(pruning=make_pruning(failure="--max-drop 1: lost 2.0 points"))
    )
    assert [step.failure for step in found.steps] == [None, None, "--max-drop 1: lost 2.0 points"]


def test_step_scored_on_other_rows_is_not_compared(reported):
    other = make_result("c", "c", parent="a").data.model_copy(
        update={"fingerprint": "another", "source": "x.csv"}
    )
    found = reported(a=make_result("a", "a"), b=pruned(), c=make_result("c", "c", parent="a", data=other))
    here = {step.name: step.score.here for step in found.steps if step.score}
    assert here == {"a": True, "b": True, "c": False}
    assert not next(step for step in found.steps if step.name == "c").front


def test_classes_are_those_of_the_rows_that_are_compared(reported):
    """A model that was scored on two files of test rows; the other models only on the second."""

    def classes(right):
        one = ClassScores(label="neg", rows=250, predicted=250, right=right, precision=1, recall=1, f1=1)
        return {"per_class": {"test": PerClass(classes=(one,))}}

    other = make_result("a", "a").data.model_copy(update={"fingerprint": "another", "source": "x.csv"})
    found = reported(
        a=make_result("a", "a", data=other, **classes(1)),
        b=pruned(**classes(2)),
        c=pruned("c", **classes(3)),
        e=make_result("a", "a", parent="a", command="evaluate", **classes(4)),
    )
    assert found.rows.data == "news.csv"
    shown = {part.name: (part.here, part.per_class.classes[0].right) for part in found.classes}
    assert shown == {"a": (True, 4), "b": (True, 2), "c": (True, 3)}


def test_parent_from_elsewhere_is_a_step_with_what_its_child_measured_of_it(reported):
    found = reported(b=pruned())
    parent = found.steps[0]
    assert (parent.folder, parent.score.value, parent.bytes_on_disk) == (None, 0.96, 100_000_000)
    assert found.headline.first == 1 and found.headline.step == 2


def test_encoder_that_was_pretrained_here_is_a_step_without_a_score(tmp_path):
    known = dict.fromkeys(EncoderResult.model_fields, 1)
    encoder = EncoderResult(**known | {"source": "z", "sha256": "z", "family": "bert", "variant": None})
    common = {name: getattr(make_result("z", "z"), name) for name in Run.model_fields}
    pretrained = PretrainResult.model_construct(
        **common | {"command": "pretrain", "parent": None}, encoder=encoder, bytes_on_disk=10
    )
    entries = [LedgerRun(tmp_path / "z", pretrained), LedgerRun(tmp_path / "a", make_result(parent="z"))]
    (first, second), _ = make_steps(find_models(make_tree(entries)), tmp_path, Speeds(entries))
    assert (first.name, first.what, first.score, first.bytes_on_disk) == ("z", "pretrain", None, 10)
    assert (second.parent, second.first) == (1, 2)


def test_what_is_missing_is_told_with_the_command_that_makes_it(reported, tmp_path):
    found = reported(a=make_result("a", "a"))
    commands = {one.command.split()[1] for one in found.missing}
    assert {"freeze-sweep", "prune-heads", "profile", "evaluate"} <= commands
    assert f"--output {tmp_path}/freeze-sweep" in next(
        one.command for one in found.missing if "freeze-sweep" in one.what
    )
    again = reported(b=pruned(), s=make_result("s", "s", sweep=make_sweep({0: [0.9, 0.91], 2: [0.8, 0.82]})))
    assert not {"freeze-sweep", "prune-heads"} & {one.command.split()[1] for one in again.missing}


def test_candidates_of_a_compression_are_told_with_their_goal(reported):
    found = reported(a=make_result("a", "a"), b=make_result("b", "b", parent="a", compress=make_compress()))
    (part,) = found.candidates
    assert (part.name, part.metric, part.goal.limit_ms, len(part.candidates)) == ("b", "accuracy", 3.0, 4)


def test_broken_files_are_noted_and_left_out(reported, tmp_path):
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "run.json").write_text("{}")
    found = reported(a=make_result("a", "a"))
    assert len(found.runs) == 1 and "not a run of enc" in found.left_out[0]


@pytest.mark.parametrize("content", [None, "{}"])
def test_folder_without_runs_is_refused_with_what_makes_one(tmp_path, content):
    if content is not None:
        (tmp_path / "run.json").write_text(content)
    recorder = Recorder(Silent())
    with pytest.raises(ConfigError, match=r"no run\.json that could be read.*enc finetune --output"):
        report(ReportConfig(folder=tmp_path), recorder)
    assert len(recorder.notes) == (content is not None)
    with pytest.raises(ConfigError, match="no such folder"):
        report(ReportConfig(folder=tmp_path / "nowhere"))
