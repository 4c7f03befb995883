"""Claims about the numbers of the ledger."""

import pytest

from encoder.errors import ConfigError
from recipes.measurements import BenchRow
from recipes.observer import Recorder, Silent
from recipes.report import report
from recipes.report_config import ReportConfig
from recipes.runs import runs
from recipes.runs_config import RunsConfig
from tests.results import (
    make_bench,
    make_latency,
    make_pruning,
    make_result,
    make_shape,
    make_size,
    make_speedup,
)


@pytest.fixture
def ledger(tmp_path):
    """Write runs by the name of their folders, and read the ledger, by name."""

    def ledger(**made):
        for name, run in made.items():
            (tmp_path / name).mkdir()
            (tmp_path / name / "run.json").write_text(run.to_json())
        read = runs(RunsConfig(folder=tmp_path))
        return {(entry.folder or entry.name).rpartition("/")[2]: entry for entry in read.runs}

    return ledger


def test_everything_is_compared_with_the_first_run_of_its_line(ledger):
    found = ledger(
        a=make_result("a", "a", latency=(make_latency(12.0),)),
        b=make_result("b", "b", parent="a", latency=(make_latency(6.0),), size=make_size(45_000_000)),
        c=make_result("c", "c", parent="b", latency=(make_latency(3.0),), size=make_size(30_000_000)),
    )
    assert [found[name].speedup for name in "abc"] == [None, 2.0, 4.0]
    assert [found[name].size_ratio for name in "bc"] == [0.5, pytest.approx(1 / 3)]
    assert found["b"].parent.endswith("/a") and found["a"].parent == "models/base"
    assert found["c"].score.value == 0.954 and (found["c"].score.low, found["c"].score.high) == (0.934, 0.97)


def test_a_ratio_is_that_of_the_report_in_turns_where_both_were_timed_so(ledger, tmp_path):
    in_turns = make_pruning(latency_before=(make_latency(15.0),), speedups=(make_speedup(2.2, 2.0, 2.4),))
    found = ledger(
        a=make_result("a", "a", latency=(make_latency(37.0),)),
        b=make_result("b", "b", parent="a", latency=(make_latency(6.0),), pruning=in_turns),
        c=make_result("c", "c", parent="a", latency=(make_latency(18.5),)),
    )
    assert (found["b"].latency.p50_ms, found["b"].speedup, found["b"].speedup_how) == (6.0, 2.2, "in turns")
    assert (found["c"].speedup, found["c"].speedup_how) == (2.0, "apart")
    gains = {step.name: step.gain for step in report(ReportConfig(folder=tmp_path)).steps}
    assert [gains[name].ratio for name in "bc"] == [2.2, 2.0]


@pytest.mark.parametrize(
    "change",
    [
        {"device_name": "another processor"},
        {"threads": 1},
        {"shape": make_shape(1, None)},
        {"device": "cuda", "device_name": "a GPU"},
    ],
)
def test_latencies_of_other_circumstances_have_no_ratio(ledger, change):
    found = ledger(
        a=make_result("a", "a"),
        b=make_result("b", "b", parent="a", latency=(make_latency(6.0, **change),)),
    )
    assert found["b"].latency.p50_ms == 6.0
    assert found["b"].speedup is None


def test_latency_is_that_of_single_rows_on_the_cpu_where_there_is_one(ledger):
    many = make_latency(99.0, shape=make_shape(32))
    gpu = make_latency(1.0, device="cuda", device_name="a GPU")
    found = ledger(
        a=make_result("a", "a", latency=(many, gpu, make_latency(12.0))),
        b=make_result("b", "b", parent="a", latency=(many,)),
    )
    assert found["a"].latency.p50_ms == 12.0
    assert found["b"].latency is None


def test_model_measured_later_is_what_its_children_are_compared_with(ledger):
    rows = [BenchRow(model=0, latency=make_latency(12.0)), BenchRow(model=1, latency=make_latency(4.0))]
    found = ledger(
        a=make_result("a", "a", latency=()),
        b=make_result("b", "b", parent="a", latency=(make_latency(6.0),)),
        bench=make_bench((("a", "a"), ("b", "b")), rows),
    )
    assert found["b"].speedup == 2.0
    assert found["a"].latency is None


def test_newest_comes_first_and_each_folder_once(tmp_path, ledger):
    ledger(a=make_result("a", "a"), b=make_result("b", "b"), bench=make_bench((("a", "a"), ("b", "b"))))
    read = runs(RunsConfig(folder=tmp_path))
    assert [entry.name.rpartition("/")[2] for entry in read.newest_first()] == ["bench", "b", "a"]


def test_files_that_were_left_out_are_noted(tmp_path):
    (tmp_path / "run.json").write_text("{")
    recorder = Recorder(Silent())
    assert runs(RunsConfig(folder=tmp_path), recorder).runs == ()
    assert recorder.notes == [f"{tmp_path}/run.json: not JSON; left out"]


def test_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="nowhere: no such folder"):
        runs(RunsConfig(folder=tmp_path / "nowhere"))
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="file: a file, not a folder"):
        runs(RunsConfig(folder=tmp_path / "file"))
