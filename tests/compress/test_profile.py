from collections.abc import Callable
from pathlib import Path

import pytest

from compress.profile import (
    Profile,
    ProfileRow,
    make_row,
    overtaking_length,
    overtaking_length_by_macs,
    profile_latency,
    profile_lengths,
)
from compress.size import macs_per_row
from compress.stopwatch import PARTS, PartTimes
from compress.workload import Case, Shape, Workload, from_grid, from_rows
from encoder.config import EncoderConfig, LayerShape
from encoder.errors import ConfigError
from encoder.rows import TokenizedRows


def row(length: int, *, attention: float, feed_forward: float) -> ProfileRow:
    seconds = dict.fromkeys(PARTS, 0.0) | {"scores and mixing": attention, "feed-forward": feed_forward}
    shape = Shape(
        batch_size=1, sequence_length=length, mean_tokens=length, max_tokens=length, padding=0, batches=1
    )
    return ProfileRow(shape=shape, part_ms=seconds, shares=seconds, mac_shares=seconds)


def test_lengths_double_up_to_512_or_the_models_limit() -> None:
    assert profile_lengths(8192) == [16, 32, 64, 128, 256, 512]
    assert profile_lengths(512) == [16, 32, 64, 128, 256, 512]
    assert profile_lengths(510) == [16, 32, 64, 128, 256, 510]
    assert profile_lengths(10) == [10]


def test_the_crossing_is_interpolated_between_the_lengths_measured() -> None:
    rows = [row(length, attention=length, feed_forward=100) for length in (32, 64, 128, 256)]
    assert overtaking_length(rows) == pytest.approx(100)


def test_attention_in_front_at_short_lengths_does_not_count_as_overtaking() -> None:
    rows = [row(16, attention=3, feed_forward=2), row(64, attention=1, feed_forward=2)]
    assert overtaking_length(rows) is None
    rows.append(row(256, attention=4, feed_forward=2))
    assert overtaking_length(rows) == pytest.approx(128)


def test_attention_in_front_everywhere_is_said_from_the_shortest_length_on() -> None:
    assert overtaking_length([row(n, attention=2, feed_forward=1) for n in (32, 16)]) == 16


def test_at_the_length_by_arithmetic_attention_and_feed_forward_need_the_same(
    config_with: Callable[..., EncoderConfig],
) -> None:
    layers = (
        LayerShape(heads=(0, 1), head_size=4, intermediate_size=64),
        LayerShape(heads=(3,), head_size=4, intermediate_size=26),
        LayerShape(heads=(0,), head_size=4, intermediate_size=8),
    )
    length = overtaking_length_by_macs(config_with(layers=layers))
    assert length is not None
    assert length == round(length)
    # What all layers have without what the last one has: those that compute every token.
    whole, last = (
        macs_per_row(config_with(layers=some), int(length), num_outputs=3) for some in (layers, layers[2:])
    )
    macs = {part: whole[part] - last[part] for part in whole}
    assert macs["projections"] + macs["scores and mixing"] == macs["feed-forward"]


def test_the_usual_shape_is_overtaken_at_twice_its_width(config_with: Callable[..., EncoderConfig]) -> None:
    layer = LayerShape(heads=(0, 1, 2, 3), head_size=4, intermediate_size=64)
    assert overtaking_length_by_macs(config_with(layers=(layer,))) == 32


def test_a_model_without_attention_is_never_overtaken(config_with: Callable[..., EncoderConfig]) -> None:
    layer = LayerShape(heads=(), head_size=4, intermediate_size=64)
    assert overtaking_length_by_macs(config_with(layers=(layer,))) is None


def test_the_arithmetic_of_data_is_that_of_its_own_rows(
    config_with: Callable[..., EncoderConfig], rows_of: Callable[..., TokenizedRows]
) -> None:
    config = config_with()
    case = Case(2, None, (rows_of([3, 9]), rows_of([5, 9])))
    result = make_row(case, config, PartTimes(dict.fromkeys(PARTS, 0.5), False, 0.25), num_outputs=3)
    rows = [macs_per_row(config, length, num_outputs=3) for length in (3, 9, 5, 9)]
    total = sum(sum(macs.values()) for macs in rows)
    assert result.mac_shares["feed-forward"] == pytest.approx(sum(m["feed-forward"] for m in rows) / total)
    assert result.mac_shares["rest"] == pytest.approx(sum(m["classifier"] for m in rows) / total)
    assert sum(result.mac_shares.values()) == pytest.approx(1)
    assert sum(result.shares.values()) == pytest.approx(1)
    assert (result.steady, result.cpu_wait) == (False, 0.25)


@pytest.mark.parametrize(
    ("steady", "cpu_wait", "reliable"),
    [(True, None, True), (True, 0.01, True), (True, 0.3, False), (False, 0.0, False)],
)
def test_a_row_from_a_busy_machine_is_not_to_be_relied_on(
    steady: bool, cpu_wait: float | None, reliable: bool
) -> None:
    one = row(16, attention=1, feed_forward=1).model_copy(update={"steady": steady, "cpu_wait": cpu_wait})
    assert one.is_reliable is reliable


def test_the_arithmetic_of_attention_grows_with_length(config_with: Callable[..., EncoderConfig]) -> None:
    config = config_with()
    grid = from_grid([1], [8, 16, 32], vocab_size=50, max_tokens=40)
    times = PartTimes(dict.fromkeys(PARTS, 1.0), steady=True, cpu_wait=None)
    shares = [
        make_row(case, config, times, num_outputs=3).mac_shares["scores and mixing"] for case in grid.cases
    ]
    assert shares == sorted(shares)


def test_a_model_is_profiled_on_lengths_and_data(
    tiny_folder: Path, rows_of: Callable[..., TokenizedRows]
) -> None:
    grid = from_grid([1], [16, 40], vocab_size=50, max_tokens=40)
    data = from_rows(rows_of([3, 9, 5, 7]), batch_sizes=[1, 4])
    profile = profile_latency(
        tiny_folder, Workload(grid.cases + data.cases), threads=1, min_runs=5, min_seconds=0
    )
    assert [str(row.shape) for row in profile.rows] == ["1x16", "1x40", "batch 1, data", "batch 4, data"]
    for one in profile.rows:
        assert sum(one.shares.values()) == pytest.approx(1)
        assert all(milliseconds > 0 for milliseconds in one.part_ms.values())
        assert 0 < one.attention_share < 1
        assert one.cpu_wait is None or 0 <= one.cpu_wait <= 1
    assert Profile.model_validate_json(profile.model_dump_json()) == profile


def test_a_graph_has_no_sublayers_to_tell_apart(tiny_folder: Path) -> None:
    grid = from_grid([1], [16], vocab_size=50, max_tokens=40)
    with pytest.raises(ConfigError, match="onnx-fp32 runs a graph as a whole"):
        profile_latency(tiny_folder, grid, runtime="onnx-fp32")
