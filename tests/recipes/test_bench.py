"""Claims about measuring and comparing models; the measuring itself is replaced, see tests/compress."""

import typing

import pytest

import recipes.bench
from compress.comparison import Compared, Comparison, Contestant, Measured, compared_pairs
from compress.latency import Unavailable
from compress.paired import Speedup
from compress.runtimes import RUNTIMES
from encoder.errors import CheckpointError, ConfigError, DataError
from recipes.bench import bench, number_models
from recipes.bench_config import BenchConfig, RuntimeName
from recipes.ledger import read_run
from tests.results import make_latency


@pytest.fixture
def measured(monkeypatch):
    """What was asked to be measured; each shape takes as many milliseconds as a row has tokens."""
    asked = []

    def measure(folder, workload, **options):
        asked.append((folder, workload, options))
        latencies = []
        for runtime in options["runtimes"]:
            latencies += [
                make_latency(case.shape.mean_tokens, runtime=runtime, shape=case.shape)
                for case in workload.cases
            ]
        return latencies

    def compare(folders, workload, *, runtimes, devices, **options):
        asked.append((folders, workload, options))
        names = [(str(folder), runtime) for folder in folders for runtime in runtimes]
        contestants = [Contestant(model=model, runtime=runtime, device="cpu") for model, runtime in names]
        return Comparison(
            measured=tuple(
                Measured(contestant=one, latency=make_latency(runtime=one.runtime, shape=case.shape))
                for one in contestants
                for case in workload.cases
            ),
            compared=tuple(
                Compared(
                    contestant=contestants[one],
                    baseline=contestants[other],
                    shape=case.shape,
                    speedup=Speedup(ratio=1.01, low=0.97, high=1.05, launches=2),
                )
                for one, other in compared_pairs(contestants)
                for case in workload.cases
            ),
        )

    monkeypatch.setattr(recipes.bench, "measure_latency", measure)
    monkeypatch.setattr(recipes.bench, "compare_latency", compare)
    return asked


def config(finetuned, *others, **changes):
    return BenchConfig(models=(finetuned.output, *others), **changes)


def test_runtime_names_are_those_that_exist():
    assert typing.get_args(RuntimeName) == RUNTIMES


def test_grid_has_every_length_with_every_batch_size(finetuned, measured):
    result = bench(config(finetuned, batch_sizes="1,4", sequence_lengths="8,64", runtimes="onnx-fp32"))
    assert [str(row.latency.shape) for row in result.rows] == ["1x8", "4x8", "1x64", "4x64"]
    assert measured[0][2]["min_runs"] == 20 and measured[0][2]["min_seconds"] == 1.0
    assert list(result.models[0].size.macs_per_token) == [8, 64]
    assert result.ratios == ()


def test_lengths_chosen_without_being_told_stay_within_the_model(finetuned, measured):
    result = bench(config(finetuned, batch_sizes="1", runtimes="torch-fp32"))
    assert [row.latency.shape.sequence_length for row in result.rows] == [32, 64]


def test_data_is_measured_in_its_own_lengths_and_needs_no_labels(finetuned, measured, tmp_path):
    (tmp_path / "texts.csv").write_text("text,when\n" + "good film,1\nbad,2\n,3\n" + "dull slow plot,4\n" * 6)
    result = bench(config(finetuned, data=str(tmp_path / "texts.csv"), batch_sizes="1,2"))
    assert result.data.rows == 8  # the empty one is left out
    assert result.data.histogram == {4: 2, 8: 6}
    assert {row.latency.shape.sequence_length for row in result.rows} == {None}
    lengths = {len(batch) for case in measured[0][1].cases for batch in case.batches}
    assert lengths == {1, 2}
    (tmp_path / "lines.txt").write_text("good film\nbad\n")
    assert bench(config(finetuned, data=str(tmp_path / "lines.txt"))).data.rows == 2


def test_longer_texts_are_cut_as_in_the_fine_tuning(finetuned, measured, tmp_path):
    (tmp_path / "texts.txt").write_text("good film " * 50 + "\nbad\n")
    result = bench(config(finetuned, data=str(tmp_path / "texts.txt")))
    assert (result.data.max_tokens, result.data.rows_cut, result.data.tokens_lost) == (12, 1, 90)


def test_models_are_told_apart_by_number_even_if_one_is_given_twice(finetuned, measured):
    result = bench(config(finetuned, finetuned.output, batch_sizes="1", sequence_lengths="8"))
    assert [row.model for row in result.rows] == [0, 0, 1, 1]
    pairs = [(one.model, one.runtime, one.baseline, one.baseline_runtime) for one in result.ratios]
    assert pairs == [
        (0, "onnx-fp32", 0, "torch-fp32"),
        (1, "torch-fp32", 0, "torch-fp32"),
        (1, "onnx-fp32", 0, "torch-fp32"),
        (1, "onnx-fp32", 0, "onnx-fp32"),
    ]
    assert {one.verdict for one in result.ratios} == {"inside the noise"}
    assert measured[0][2]["min_seconds"] == 3.0
    assert any("has the shapes of" in note for note in result.notes)


def test_runtime_that_is_missing_takes_one_row_and_no_ratio():
    gpu = Unavailable(runtime="torch-fp32", device="cuda", reason="no GPU")
    there = [Contestant(model=name, runtime="torch-fp32", device="cpu") for name in "ab"]
    not_there = [Contestant(model=name, runtime="torch-fp32", device="cuda") for name in "ab"]
    measured = [Measured(contestant=one, latency=make_latency()) for one in there for _ in range(2)]
    measured += [Measured(contestant=one, latency=gpu) for one in not_there]
    speedup = Speedup(ratio=2.0, low=1.9, high=2.1, launches=2)
    shape = make_latency().shape
    compared = [Compared(contestant=there[1], baseline=there[0], shape=shape, speedup=speedup)] * 2
    comparison = Comparison(measured=tuple(measured), compared=tuple(compared))
    rows, ratios = number_models(comparison, ("cpu", "cuda"), [("torch-fp32",)] * 2, cases=2)
    assert [(row.model, row.latency.device) for row in rows] == [
        *[(0, "cpu")] * 2,
        *[(1, "cpu")] * 2,
        (0, "cuda"),
        (1, "cuda"),
    ]
    assert [(one.model, one.baseline, one.verdict) for one in ratios] == [(1, 0, "faster")] * 2


def test_output_holds_what_was_returned_and_whose_it_is(finetuned, measured, tmp_path):
    result = bench(config(finetuned, output=tmp_path / "bench"))
    assert read_run(tmp_path / "bench" / "run.json") == result
    assert result.parent.sha256 == result.models[0].model.sha256 == finetuned.model.sha256


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"sequence_lengths": "8,65"}, ConfigError, "--sequence-lengths 65: .* holds 64 tokens at most"),
        ({"data": "nowhere.csv"}, DataError, "nowhere.csv: no such file"),
        ({"device": "cuda"}, ConfigError, "--device cuda: no GPU"),
    ],
)
def test_mistakes_are_told_before_anything_is_measured(finetuned, measured, changes, error, message):
    from compress.machine import list_gpus

    if changes.get("device") == "cuda" and list_gpus():
        pytest.skip("there is a GPU")
    with pytest.raises(error, match=message):
        bench(config(finetuned, **changes))
    assert measured == []


def test_all_folders_that_are_no_models_are_named(finetuned, tiny_model, measured, tmp_path):
    with pytest.raises(CheckpointError) as caught:
        bench(config(finetuned, str(tmp_path), str(tiny_model)))
    first, second = str(caught.value).splitlines()
    assert first == f"{tmp_path}: not a model folder: config.json is missing"
    assert "without a classifier; fine-tune it first" in second
    assert measured == []
