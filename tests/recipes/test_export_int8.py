"""Claims about exports in 8 bits."""

from dataclasses import replace
from pathlib import Path

import onnx
import pytest

from recipes.export import export
from recipes.export_config import ExportConfig
from recipes.observer import Recorder, Silent
from recipes.predict import predict
from recipes.predict_config import PredictConfig


@pytest.fixture
def options(finetuned, reviews, tmp_path):
    return {"model": finetuned.output, "data": str(reviews), "output": tmp_path / "out", "latency": False}


@pytest.fixture
def drops(monkeypatch):
    """The loss of score of each trial, as a function of how many parts are in float."""
    import recipes.export_int8 as module

    seen = []
    write = module.write_graph_folder

    def spy(options, inputs, proto, folder):
        seen.append({node.op_type for node in proto.graph.node})
        return write(options, inputs, proto, folder)

    monkeypatch.setattr(module, "write_graph_folder", spy)

    def set_drops(*values):
        left, proven, prove = list(values), [], module.prove

        def with_drop(*arguments, **more):
            if not proven:  # one fresh process is enough
                proven.append(prove(*arguments, **more))
            return replace(proven[0], drop=left.pop(0))

        monkeypatch.setattr(module, "prove", with_drop)
        return seen

    return set_drops


@pytest.mark.parametrize("graph", ["portable", "fused"])
def test_int8_keeps_the_score_and_is_smaller(options, graph, finetuned):
    result = export(ExportConfig(**options, precision="int8", graph=graph, max_drop=5))
    found = result.export
    assert found.failures == ()
    assert (found.precision, found.form, found.tolerance) == ("int8", graph, None)
    assert set(found.parity) == {"test", "validation"}
    assert found.kept_in_float == ()
    assert [trial.kept_in_float for trial in found.trials] == [0]
    assert result.size.bytes_on_disk < 0.6 * found.size_before.bytes_on_disk
    assert found.parity["test"].max_difference > 0
    assert next(predict(PredictConfig(model=result.output, texts=("good film", "", "лучший"))).rows)


def test_the_worst_parts_stay_in_float_until_the_score_is_kept(options, drops):
    """E10."""
    seen = drops(0.03, 0.02, None, 0.004, 0.01, 0.004)
    result = export(ExportConfig(**options, precision="int8"))
    found = result.export
    assert found.failures == ()
    tried = [(trial.kept_in_float, trial.drop) for trial in found.trials]
    assert tried == [(0, 0.03), (1, 0.02), (2, None), (4, 0.004), (3, 0.01)]
    assert found.kept_in_float == tuple(one.part for one in found.ranking[:4])
    effects = [one.effect for one in found.ranking]
    assert effects == sorted(effects, reverse=True)
    assert len(seen) == 6  # what is in the folder at the end is the graph that was chosen, proven again
    assert any("rows, without their labels" in note for note in result.notes)


def test_int8_that_is_never_good_enough_is_all_in_float_and_says_so(options, drops):
    drops(*[0.5] * 20)
    found = export(ExportConfig(**options, precision="int8")).export
    assert len(found.kept_in_float) == len(found.ranking)
    assert "The accuracy falls by 50.00 points" in found.failures[0]


@pytest.mark.parametrize("graph", ["portable", "fused"])
def test_what_else_is_in_a_batch_changes_no_answer_in_int8(options, graph):
    """D8: ranges are fixed beforehand."""
    result = export(ExportConfig(**options, precision="int8", graph=graph, calibration_rows=20, max_drop=5))
    assert any("on 20 train rows" in note for note in result.notes)
    texts = ("good film", "a bad dull plot and a very long story of it", "great")
    together = next(predict(PredictConfig(model=result.output, texts=texts)).rows)
    for one in together:
        ((alone,),) = predict(PredictConfig(model=result.output, texts=(one.text,))).rows
        assert alone.probabilities == pytest.approx(one.probabilities, abs=1e-6)


def test_ranges_of_activations_can_be_found_at_run_time(options):
    result = export(ExportConfig(**options, precision="int8", calibration_rows=0, max_drop=5))
    graph = onnx.load(Path(result.output) / "model.onnx").graph
    assert "DynamicQuantizeLinear" in {node.op_type for node in graph.node}


@pytest.mark.parametrize(("exact", "any_cpu", "warned"), [(True, False, True), (True, True, False)])
def test_int8_for_this_kind_of_cpu_warns_on_another(options, monkeypatch, exact, any_cpu, warned):
    """E9."""
    monkeypatch.setattr("compress.quantization.cpu_flags", lambda: ("avx512_vnni",) if exact else ())
    result = export(ExportConfig(**options, precision="int8", any_cpu=any_cpu, max_drop=100))
    assert any("adds up 8-bit products in 32 bits" in note for note in result.notes) == warned
    observer = Recorder(Silent())
    monkeypatch.setattr("compress.quantization.cpu_flags", lambda: ())
    predict(PredictConfig(model=result.output, texts=("a",)), observer=observer)
    assert any("sums may overflow" in note for note in observer.notes) == warned
