"""Claims about what `enc compress` says of its time beforehand."""

import pytest

from compress.latency_probing import count_graphs, count_timings, find_table, known_table, measure_table
from encoder.model_folder import read_config
from recipes.compress_config import CompressConfig
from recipes.compress_time import foresee
from recipes.plan_context import StepContext
from recipes.row_times import RowTimes


@pytest.fixture
def shape(tiny_model):
    return read_config(tiny_model)


@pytest.fixture
def context(shape):
    """A machine on which a row takes 1 ms, 3 ms in training, and a process 2 s."""
    times = RowTimes(shape, 2, 10.0, training_s=3e-3, prediction_s=1e-3, process_s=2.0)
    return StepContext(shape, shape, {"train": 4000, "validation": 500, "test": 500}, 10.0, times)


def config(**options):
    return CompressConfig(model="m", data="d", output="o", target_speedup=4, **options)


def seconds(forecast):
    return {work.what.split(",")[0]: work.seconds for work in forecast.works}


def test_all_parts_are_named_and_what_may_not_be_needed_is_in_the_longest_only(context):
    found = foresee(config(max_candidates=2, num_epochs=3), context)
    names = [work.what for work in found.works]
    for part in (
        "latency table",
        "importance",
        "candidates scored",
        "exported",
        "teacher",
        "trained, 3 epochs",
    ):
        assert any(part in name for name in names), part
    without = foresee(config(max_candidates=0), context)
    assert without.least_seconds == found.least_seconds
    trained = sum(work.most * work.seconds for work in found.works if not work.least)
    assert trained >= 4000 * 1e-3 + 2 * 3 * 4000 * 3e-3 * 0.5
    assert found.most_seconds >= without.most_seconds + trained


def test_a_table_that_is_known_takes_no_time(context):
    found, known = (foresee(config(), context, has_table=has) for has in (False, True))
    assert seconds(known)["the latency table is known"] < seconds(found)["latency table of this machine"] / 4


def test_on_a_busy_machine_timings_are_repeated(context):
    quiet, busy = (seconds(foresee(config(), context, busy=one)) for one in (False, True))
    longer = {name for name in quiet if busy[name] > quiet[name]}
    assert longer == {
        "latency table of this machine",
        "a candidate exported",
    }


@pytest.mark.parametrize("name", ["prediction_s", "training_s", "process_s"])
def test_on_a_slower_machine_it_takes_longer(context, name):
    slower = {"times": RowTimes(**vars(context.times) | {name: 10 * getattr(context.times, name)})}
    found = foresee(config(), context), foresee(config(), StepContext(**vars(context) | slower))
    assert found[0].most_seconds < found[1].most_seconds


@pytest.mark.slow
def test_graphs_and_timings_are_counted_right_and_a_table_is_known_when_it_is_kept(
    shape, tmp_path, monkeypatch
):
    told = []
    monkeypatch.setattr("compress.latency_probing._time", lambda worker: (1.0, 0.0))
    table = measure_table(shape, tokens=8, threads=1, on_done=lambda done, total: told.append((done, total)))
    whole = count_graphs(shape) + count_timings(shape)
    assert told == [(done, whole) for done in range(whole + 1)]
    monkeypatch.setenv("ENC_CACHE", str(tmp_path))
    monkeypatch.setattr("compress.latency_probing.measure_table", lambda *_, **__: table)
    assert known_table(shape, tokens=8, threads=1) is None
    assert find_table(shape, tokens=8, threads=1) == known_table(shape, tokens=8, threads=1) == table
