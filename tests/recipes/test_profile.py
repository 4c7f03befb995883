"""Claims about what a profile says is worth pruning; times are invented, see tests/compress for real ones."""

import pytest

import recipes.profile
from compress.profile import Profile, ProfileRow
from compress.stopwatch import PARTS
from encoder.errors import ConfigError
from recipes.ledger import read_run
from recipes.profile import advise, profile
from recipes.profile_config import ProfileConfig
from tests.results import make_shape


def row(length, attention, feed_forward):
    shares = dict.fromkeys(PARTS, 0.0) | {
        "projections": attention / 2,
        "scores and mixing": attention / 2,
        "feed-forward": feed_forward,
        "rest": 1 - attention - feed_forward,
    }
    return ProfileRow(
        shape=make_shape(1, length),
        part_ms={part: share * 10 for part, share in shares.items()},
        shares=shares,
        mac_shares=shares,
    )


def made_of(*rows, overtakes_at=None):
    return Profile(
        rows=rows,
        overtakes_at=overtakes_at,
        overtakes_at_macs=768.0,
        runtime="torch-fp32",
        device="cpu",
        device_name="a processor",
        threads=1,
    )


@pytest.mark.parametrize(
    ("measured", "sentence"),
    [
        (
            made_of(row(16, 0.3, 0.6), row(None, 0.3, 0.6)),
            "On the lengths of this data attention takes 30% of the time, the feed-forward blocks 60%: "
            "neurons are the better thing to prune. Without half of them a run takes 30% less time at best.",
        ),
        (made_of(row(16, 0.3, 0.6), row(None, 0.7, 0.2)), "heads are the better thing to prune"),
        (made_of(row(None, 0.44, 0.46)), "about equal"),
        (made_of(row(16, 0.3, 0.6), row(512, 0.4, 0.5)), "At all lengths measured, as at 512 tokens"),
        (made_of(row(64, 0.3, 0.6)), "At 64 tokens attention takes 30%"),
        (
            made_of(row(16, 0.3, 0.6), row(512, 0.6, 0.3), overtakes_at=201.4),
            "Up to about 201 tokens the feed-forward blocks take longer than attention: prune neurons",
        ),
        (made_of(row(16, 0.5, 0.2), row(512, 0.6, 0.3), overtakes_at=16.0), "heads are the better"),
    ],
)
def test_advice_follows_the_larger_share(measured, sentence):
    assert sentence in advise(measured)


def test_profile_covers_all_lengths_and_the_data(finetuned, reviews, monkeypatch, tmp_path):
    asked = {}

    def measure(folder, workload, **options):
        asked.update(options, shapes=[str(case.shape) for case in workload.cases])
        return made_of(row(None, 0.3, 0.6))

    monkeypatch.setattr(recipes.profile, "profile_latency", measure)
    config = ProfileConfig(model=finetuned.output, data=str(reviews), output=tmp_path / "profile", threads=1)
    result = profile(config)
    assert asked["shapes"] == ["1x16", "1x32", "1x64", "batch 1, data"]
    assert asked["threads"] == 1
    assert read_run(tmp_path / "profile" / "run.json") == result
    assert result.parent.sha256 == finetuned.model.sha256
    with pytest.raises(ConfigError, match="--sequence-lengths 65"):
        profile(ProfileConfig(model=finetuned.output, sequence_lengths="65"))
