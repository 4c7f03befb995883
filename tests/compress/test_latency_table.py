"""Claims about latency tables, on tables made by hand and on graphs of a tiny shape."""

import numpy as np
import pytest

import compress.latency_probing as probing
from compress.latency_budget import fit_units
from compress.latency_probing import find_table, measure_table, measure_undisturbed, undisturbed_p50
from compress.latency_table import LatencyTable, LayerTimes, solve_times
from compress.units import unit_counts
from compress.workload import from_grid
from tests.compress.conftest import BLOCKS

# A head takes 0.5 ms, a group of 16 neurons 0.25 ms; of the last layer all heads 0.4 ms, all neurons 0.2 ms.
TIMES = LayerTimes(
    rest_ms=1.0,
    base_ms=0.125,
    heads=((0, 0.0), (4, 2.0)),
    neurons=((0, 0.0), (16, 0.25), (32, 0.5)),
    last_heads_ms=0.4,
    last_neurons_ms=0.2,
)
TABLE = LatencyTable(
    tokens=8, threads=1, device_name="a CPU", form="fused", depth=2, times={"fp32": TIMES}, reliable=True
)


def with_units(config, heads, neurons):
    layers = [
        shape.model_copy(update={"heads": tuple(range(h)), "intermediate_size": f})
        for shape, h, f in zip(config.layers, heads, neurons, strict=True)
    ]
    return config.model_copy(update={"layers": tuple(layers)})


def test_the_time_of_a_model_is_the_sum_over_its_parts(config_with):
    shape = config_with().layers[0]
    whole = config_with(layers=(shape,) * 3)
    # rest + two layers, each its base, four heads and 32 neurons + the last layer
    assert TABLE.predict(whole, "fp32") == pytest.approx(1 + 2 * (0.125 + 2 + 0.5) + 0.4 + 0.2)
    one_head_less = TABLE.predict(with_units(whole, (3, 4, 4), (32, 32, 32)), "fp32")
    neurons_less = TABLE.predict(with_units(whole, (4, 4, 4), (32, 24, 32)), "fp32")
    both = TABLE.predict(with_units(whole, (3, 4, 4), (32, 24, 32)), "fp32")
    assert TABLE.predict(whole, "fp32") - one_head_less == pytest.approx(0.5)
    assert TABLE.predict(whole, "fp32") - neurons_less == pytest.approx(0.125)
    assert both == pytest.approx(one_head_less - 0.125)
    assert TABLE.predict(with_units(whole, (4, 4, 2), (32, 32, 0)), "fp32") == pytest.approx(6.85 - 0.4)


def test_parts_are_found_in_the_times_of_whole_models(config_with):
    shape, depth = config_with().layers[0], 4

    def alike(layers, heads, neurons):
        return with_units(config_with(layers=(shape,) * layers), (heads,) * layers, (neurons,) * layers)

    deep = [(depth, 4, 32), (depth, 0, 32), (depth, 2, 32), (depth, 4, 0), (depth, 4, 16)]
    measured = {point: TABLE.predict(alike(*point), "fp32") for point in [*deep, (1, 4, 32)]}
    found = solve_times(measured | {(1, 0, 0): 1.0}, last_share=2 / 3, depth=depth)
    table = TABLE.model_copy(update={"times": {"fp32": found}})
    for point, ms in measured.items():
        assert table.predict(alike(*point), "fp32") == pytest.approx(ms)
    for layers in (2, 7):
        other = alike(layers, 2, 16)
        assert table.predict(other, "fp32") == pytest.approx(TABLE.predict(other, "fp32"))


def test_noise_never_makes_a_part_faster_than_nothing_or_slower_for_being_less():
    times = {
        (1, 0, 0): 1.0,
        (1, 4, 32): 0.9,
        (3, 4, 32): 2.0,
        (3, 0, 32): 2.5,
        (3, 2, 32): 1.5,
        (3, 4, 0): 1.0,
    }
    found = solve_times(times, last_share=0.5, depth=3)
    assert found.last_heads_ms == found.last_neurons_ms == 0
    assert [ms for _, ms in found.heads] == [0, 0, 0]
    assert found.base_ms >= 0
    assert (np.diff([ms for _, ms in found.neurons]) >= 0).all()


def brute_force(config, scores, budget):
    """The least importance that can be lost within ``budget``, over all numbers of units that may stay."""
    best = np.inf
    for heads in np.ndindex(4, 4):
        for neurons in np.ndindex(4, 4):
            kept_heads, kept_neurons = [h + 1 for h in heads], [8 * (f + 1) for f in neurons]
            if TABLE.predict(with_units(config, kept_heads, kept_neurons), "fp32") > budget:
                continue
            lost = sum(np.sort(s)[: 4 - h].sum() for s, h in zip(scores["heads"], kept_heads, strict=True))
            lost += sum(
                np.sort(s)[: 32 - f].sum() for s, f in zip(scores["neurons"], kept_neurons, strict=True)
            )
            best = min(best, lost)
    return best


@pytest.mark.parametrize("budget", [4.0, 3.4, 3.0, 2.4, 2.0])
def test_the_units_that_stay_fit_the_budget_and_lose_about_as_little_as_can_be(config_with, budget):
    random = np.random.default_rng(0)
    config = config_with()
    scores = {
        "heads": [random.random(4) for _ in range(2)],
        "neurons": [random.random(32) / 10 for _ in range(2)],
    }
    kept = fit_units(config, scores, TABLE, "fp32", budget)
    counts = {unit: [len(places) for places in kept[unit]] for unit in kept}
    took = TABLE.predict(with_units(config, counts["heads"], counts["neurons"]), "fp32")
    assert took <= budget
    lost = sum(
        float(np.delete(one, places).sum())
        for unit in kept
        for one, places in zip(scores[unit], kept[unit], strict=True)
    )
    # No choice that is as fast as this one loses less; one that uses up the whole budget may.
    assert lost == pytest.approx(brute_force(config, scores, took + 1e-9))
    for unit in kept:
        for one, places in zip(scores[unit], kept[unit], strict=True):
            gone = np.delete(one, places)
            assert gone.max(initial=-1) <= one[list(places)].min()


def test_a_budget_for_everything_removes_nothing_and_one_for_too_little_is_none(config_with):
    config = config_with()
    scores = {unit: [np.ones(count) for count in unit_counts(config, unit)] for unit in ("heads", "neurons")}
    kept = fit_units(config, scores, TABLE, "fp32", 100.0)
    assert [len(places) for places in kept["heads"]] == [4, 4]
    assert [len(places) for places in kept["neurons"]] == [32, 32]
    assert fit_units(config, scores, TABLE, "fp32", 1.0) is None


@pytest.fixture
def quick(monkeypatch):
    """Measurements that take no time, and say little."""
    for name, value in (("RUNS", 1), ("SECONDS", 0.0), ("WARM_UP_SECONDS", 0.0), ("MOST_TRIES", 1)):
        monkeypatch.setattr(probing, name, value)


def test_a_table_is_measured_and_kept_for_the_same_machine_and_shape(
    config_with, quick, monkeypatch, tmp_path
):
    monkeypatch.setenv("ENC_CACHE", str(tmp_path))
    monkeypatch.setattr(probing, "is_disturbed", lambda wait: False)
    config = config_with()
    table = find_table(config, tokens=8, threads=1)
    assert list(table.times) == ["fp32", "int8"]
    for times in table.times.values():
        assert times.rest_ms > 0
        assert [number for number, _ in times.heads] == [0, 1, 3, 4]
        assert [number for number, _ in times.neurons] == [0, 11, 21, 32]
    monkeypatch.setattr(probing, "measure_table", lambda *_, **__: pytest.fail("measured again"))
    assert find_table(config, tokens=8, threads=1) == table


def test_a_disturbed_table_is_not_kept(config_with, monkeypatch, tmp_path):
    monkeypatch.setenv("ENC_CACHE", str(tmp_path))
    disturbed = TABLE.model_copy(update={"reliable": False})
    monkeypatch.setattr(probing, "measure_table", lambda *_, **__: disturbed)
    assert find_table(config_with(), tokens=8, threads=1) == disturbed
    assert not list(tmp_path.rglob("*.json"))


def test_layers_without_heads_or_neurons_can_be_measured(config_with, quick):
    config = config_with()
    bare = with_units(config, (0, 0), (0, 0))
    table = measure_table(bare, tokens=3, threads=1)
    assert table.form == "fused"
    assert table.predict(bare, "int8") > 0


def test_what_has_no_fused_graph_is_measured_as_it_will_be_exported(config_with, quick):
    config = config_with(**BLOCKS)
    table = measure_table(config, tokens=3, threads=1)
    assert table.form == "portable"
    assert table.predict(config, "fp32") > 0


def test_what_another_process_did_to_the_runs_is_taken_out():
    quiet = np.array([[1.0, 2.0, 3.0]] * 4)
    assert undisturbed_p50(quiet, 0.0) == 2
    some = quiet.copy()
    some[1:] *= 3  # one run of each input was left alone
    assert undisturbed_p50(some, 0.6) == 2
    assert undisturbed_p50(quiet * 3, 2 / 3) == pytest.approx(2)  # none was
    assert undisturbed_p50(quiet, None) == 2


def test_what_a_few_runs_waited_for_is_not_taken_off_the_others():
    """One of 100 runs waited as long as all took together: half of the time, and nothing of the p50."""
    few = np.ones((25, 4))
    few[3, 1] += 100
    assert undisturbed_p50(few, 0.5) == pytest.approx(1)


def test_a_model_is_timed_as_the_table_is(tiny_folder, quick):
    workload = from_grid([1], [8], vocab_size=50, max_tokens=40)
    assert measure_undisturbed(tiny_folder, "onnx-fp32", workload, threads=1) > 0
