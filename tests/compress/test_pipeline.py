"""Claims about transfers and idle time of a pipeline, counted on paper."""

from itertools import pairwise

import pytest

from compress.pipeline import Pipeline, bubble_share, count_transfers, parse_pipeline
from encoder.errors import ConfigError


def pipeline(stages, interleave=1, microbatches=8):
    return Pipeline(stages=stages, interleave=interleave, microbatches=microbatches)


def by_simulation(stages, interleave, blocks):
    """Every device's memory as a set, moved along piece by piece."""
    pieces = stages * interleave
    memory = [set() for _ in range(stages)]
    memory[0] = {"embeddings"}
    made, naive, cached = ["embeddings"], 0, 0
    for piece in range(pieces):
        device = memory[piece % stages]
        if piece:
            naive += len(made)
            cached += len(set(made) - device)
            device |= set(made)
        ends = [(block + 1) * pieces for block in range(blocks)]  # in pieces · blocks
        finished = [n for n, end in enumerate(ends) if piece * blocks < end <= (piece + 1) * blocks]
        made += finished
        device |= set(finished)
    return naive, cached


def test_the_example_of_the_paper_is_19_transfers_and_11_with_what_is_kept():
    traffic = count_transfers(pipeline(4, 2), 4)
    assert (traffic.without_cache, traffic.with_cache) == (19, 11)
    assert round(100 * (11 - 19) / 19) == -42
    assert traffic.partial_sums == 4


@pytest.mark.parametrize(
    ("stages", "interleave", "blocks"),
    [(2, 1, 1), (4, 1, 4), (4, 2, 8), (4, 2, 3), (3, 4, 5), (8, 3, 12), (5, 2, 7), (2, 6, 4)],
)
def test_the_count_is_that_of_devices_that_remember(stages, interleave, blocks):
    traffic = count_transfers(pipeline(stages, interleave), blocks)
    assert (traffic.without_cache, traffic.with_cache) == by_simulation(stages, interleave, blocks)
    assert len(traffic.transitions) == stages * interleave - 1
    for one, other in pairwise(traffic.transitions):
        assert other.source == one.target == one.piece % stages


def test_without_a_second_piece_nothing_is_there_yet():
    traffic = count_transfers(pipeline(6), 6)
    assert traffic.with_cache == traffic.without_cache


def test_the_most_that_one_transition_carries_stops_growing_with_interleaving():
    most = [max(one.new for one in count_transfers(pipeline(4, v), 4 * v).transitions) for v in (2, 4, 8)]
    assert most == [4, 4, 4]


@pytest.mark.parametrize(
    ("stages", "interleave", "microbatches", "share"),
    [(4, 1, 8, 3 / 11), (4, 2, 8, 3 / 19), (8, 1, 8, 7 / 15), (2, 1, 1, 1 / 2)],
)
def test_the_bubble_is_what_the_last_device_waits(stages, interleave, microbatches, share):
    assert bubble_share(pipeline(stages, interleave, microbatches)) == pytest.approx(share)


def test_a_pipeline_is_read_from_words():
    found = parse_pipeline("stages=4, interleave=2,microbatches=8,blocks=4")
    assert (found.stages, found.interleave, found.microbatches, found.blocks) == (4, 2, 8, 4)
    assert parse_pipeline("stages=2,microbatches=1").blocks is None


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        (
            "stages=1,microbatches=x",
            ["stages is '1'; expected a whole number, 2 or more", "microbatches is 'x'"],
        ),
        (
            "stage=4,microbatches=8",
            ["'stage=4': expected stages, .*did you mean 'stages'", "stages is missing"],
        ),
        ("stages=4", ["microbatches is missing"]),
        ("stages=4,stages=5,microbatches=8", ["stages is given twice"]),
        ("stages=4,interleave=2,microbatches=6", ["microbatches is 6; .* needs a multiple of the 4 stages"]),
    ],
)
def test_all_that_is_wrong_is_told(text, messages):
    with pytest.raises(ConfigError) as caught:
        parse_pipeline(text)
    for message in messages:
        assert caught.match(
            f"--pipeline {text}: {message}" if message == messages[0] else f"[\\s\\S]*{message}"
        )
