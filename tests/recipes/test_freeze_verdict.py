"""Claims about the verdict of a sweep, on planted curves."""

import math

import numpy as np
import pytest

from encoder.errors import EncError
from recipes.freeze_verdict import MOST_SEEDS, judge_sweep

BEND = {0: 0.95, 1: 0.95, 2: 0.95, 3: 0.95, 4: 0.91, 5: 0.85, 6: 0.70}


def curve(means, seeds, spread, seed=0):
    draw = np.random.default_rng(seed)
    return {k: tuple(mean + spread * draw.standard_normal(seeds)) for k, mean in means.items()}


def test_planted_bend_is_found_and_said():
    points, verdict = judge_sweep(curve(BEND, seeds=3, spread=0.004), rows=500)
    assert (verdict.chosen, verdict.hurts_from, verdict.undecided) == (3, 4, ())
    assert [point.judgement for point in points] == ["fine"] * 4 + ["hurts"] * 3
    text = " ".join(verdict.sentences)
    assert "Up to k = 3 freezing costs nothing that can be seen" in text
    assert "From k = 4 on it hurts: it loses 4" in text
    assert "the means of 3 seeds, paired by seed" in text
    assert "would not be told from noise" in text


@pytest.mark.parametrize("seeds", [2, 3, 5])
def test_flat_curve_with_noise_rarely_hurts(seeds, monkeypatch):
    """The best of 13 equal means is too good by luck; that must not make the others look bad."""
    monkeypatch.setattr("recipes.freeze_verdict.MOST_SEEDS", 1)  # of no matter here, and slow to find out
    flat = dict.fromkeys(range(13), 0.9)
    judged = [judge_sweep(curve(flat, seeds, 0.01, seed), rows=500) for seed in range(1000, 1400)]
    wrong = sum(any(point.judgement == "hurts" for point in points) for points, _ in judged)
    assert wrong / len(judged) <= 0.08


def test_noise_as_large_as_the_bend_is_not_decided_and_the_seeds_that_decide_are_said():
    noisy = {0: (0.95, 0.93), 1: (0.93, 0.95), 2: (0.95, 0.93), 3: (0.90, 0.88)}
    points, verdict = judge_sweep(noisy, rows=500)
    assert (verdict.chosen, verdict.hurts_from, verdict.undecided) == (2, None, (3,))
    assert points[3].loss < verdict.noise
    assert verdict.more_seeds > 0
    text = " ".join(verdict.sentences)
    assert "Not decided: k = 3; what was lost may be noise. k = 3: it loses 5.0 points (" in text
    assert f"About {verdict.more_seeds} more seed" in text
    assert "No k above it is shown to hurt." in text


def test_number_of_seeds_advised_decides_about_four_times_in_five():
    """The advice rests on the loss and the spread as they were seen; here they are the true ones."""
    spread = 0.02
    seen = {0: (0.95 + spread, 0.95 - spread), 1: (0.95 - spread, 0.95 + spread), 2: (0.92, 0.92)}
    _, advised = judge_sweep(seen, rows=500)
    assert advised.undecided == (2,)
    true = math.sqrt(4 * spread**2 / 2)  # the residuals of ``seen`` over their degrees of freedom
    means = {k: sum(scores) / 2 for k, scores in seen.items()}
    seeds = 2 + advised.more_seeds
    draws = [judge_sweep(curve(means, seeds, true, seed), rows=500) for seed in range(100)]
    decided = sum(verdict.hurts_from == 2 for _, verdict in draws)
    assert 0.7 < decided / len(draws) <= 0.97


def test_loss_that_no_number_of_seeds_decides_is_called_that():
    _, verdict = judge_sweep({0: (0.99, 0.51), 1: (0.48, 0.999)}, rows=100, max_drop=0.0105)
    assert verdict.more_seeds is None
    assert f"Over {MOST_SEEDS} more seeds would be needed" in " ".join(verdict.sentences)


@pytest.mark.parametrize(
    ("max_drop", "chosen", "hurts_from"),
    [(0.0, 3, 4), (0.02, 3, 4), (0.05, 4, 5), (0.12, 5, 6), (0.3, 6, None)],
)
def test_allowed_drop_decides_by_the_mean_loss(max_drop, chosen, hurts_from):
    scores = {k: (mean, mean) for k, mean in BEND.items()}
    _, verdict = judge_sweep(scores, rows=500, max_drop=max_drop)
    assert (verdict.chosen, verdict.hurts_from, verdict.undecided) == (chosen, hurts_from, ())
    assert f"loses no more than {100 * max_drop:.1f} points is {chosen}" in verdict.sentences[0]


def test_loss_near_the_allowed_one_is_said_to_be_unsure():
    scores = curve(BEND, seeds=2, spread=0.01, seed=1)
    _, verdict = judge_sweep(scores, rows=500, max_drop=0.035)
    assert verdict.undecided == (4,) and verdict.more_seeds
    text = " ".join(verdict.sentences)
    assert "more than --max-drop 3.5, but 2 seeds cannot tell that from a loss within it. About" in text


@pytest.mark.parametrize(
    ("max_drop", "error", "judgement"),
    [(0.01, 0.2, "undecided"), (0.01, 0.03, "hurts"), (None, 0.2, "undecided"), (None, 0.03, "hurts")],
)
def test_only_an_interval_above_the_limit_is_said_to_hurt(max_drop, error, judgement):
    points, verdict = judge_sweep(
        {0: (0.9,), 6: (0.8,)}, rows=40, max_drop=max_drop, sampling_errors=lambda best: {6: error}
    )
    assert points[1].judgement == judgement and points[1].sure == (judgement == "hurts")
    assert (points[1].low > (max_drop or 0.0)) == (judgement == "hurts")
    text = " ".join(verdict.sentences)
    assert ("it hurts" in text) == (judgement == "hurts")
    assert (verdict.hurts_from, verdict.undecided) == ((6, ()) if judgement == "hurts" else (None, (6,)))
    if judgement == "undecided" and max_drop:
        assert "Not decided: k = 6: it loses 10.0 points (-29.2 to 49.2) as measured, more than" in text
        assert "--max-drop 1, but 40 rows cannot tell that from a loss within it." in text


def test_chosen_k_that_may_lose_more_than_allowed_is_said_to():
    points, verdict = judge_sweep(
        {0: (0.9,), 6: (0.895,)}, rows=40, max_drop=0.01, sampling_errors=lambda best: {6: 0.01}
    )
    assert (verdict.chosen, verdict.hurts_from, verdict.undecided) == (6, None, ())
    assert points[1].judgement == "fine" and not points[1].sure
    text = " ".join(verdict.sentences)
    assert text.startswith("As measured, the largest k that loses no more than 1.0 point is 6")
    assert "k = 6 may lose more than --max-drop 1, as far as 40 rows can tell." in text
    assert "No k that was tried is shown to hurt" in text


def test_k_above_the_first_that_hurts_is_not_said_to_hurt_where_it_may_not():
    errors = {1: 0.01, 2: 0.2, 3: 0.01}
    scores = {0: (0.9,), 1: (0.8,), 2: (0.8,), 3: (0.8,)}
    _, verdict = judge_sweep(scores, rows=500, sampling_errors=lambda best: errors)
    assert verdict.hurts_from == 1
    assert verdict.sentences[1].startswith("k = 1 hurts: it loses 10.0 points (")
    assert verdict.sentences[1].endswith("; of k = 2 above it that is not decided.")


def test_loss_of_just_what_is_allowed_is_allowed():
    _, verdict = judge_sweep({0: (0.95,), 1: (0.94,)}, rows=100, max_drop=0.01)  # 0.95 - 0.94 > 0.01
    assert verdict.chosen == 1


def test_one_seed_is_judged_by_the_sampling_error_and_says_so():
    scores = {k: (mean,) for k, mean in BEND.items()}
    points, verdict = judge_sweep(scores, rows=500, sampling_errors=lambda best: dict.fromkeys(BEND, 0.01))
    assert (verdict.chosen, verdict.hurts_from, verdict.undecided) == (3, 4, ())
    assert "sampling error of 500 validation rows" in verdict.test
    assert "of one seed the spread between seeds is not known" in verdict.test
    assert all(point.spread is None for point in points)
    _, larger = judge_sweep(scores, rows=500, sampling_errors=lambda best: dict.fromkeys(BEND, 0.02))
    assert (larger.chosen, larger.hurts_from, larger.undecided) == (3, 5, (4,))
    assert larger.more_seeds >= 1


def test_bend_of_a_score_that_is_better_when_lower():
    scores = {0: (0.20, 0.21), 1: (0.20, 0.20), 2: (0.50, 0.52)}
    _, verdict = judge_sweep(scores, rows=100, lower_is_better=True)
    assert (verdict.best, verdict.chosen, verdict.hurts_from) == (1, 1, 2)
    assert "points" not in verdict.sentences[1]


def test_dip_below_a_k_that_is_fine_does_not_stop_there():
    _, verdict = judge_sweep({0: (0.5, 0.5), 1: (0.95, 0.95), 2: (0.95, 0.94), 3: (0.6, 0.6)}, rows=500)
    assert (verdict.chosen, verdict.hurts_from) == (2, 3)


def test_dip_below_the_last_k_is_told():
    _, verdict = judge_sweep({0: (0.5, 0.5), 1: (0.95, 0.95), 2: (0.95, 0.94)}, rows=500)
    assert verdict.sentences[1] == "Below it k = 0 hurts."


def test_best_of_equals_is_the_one_with_more_frozen():
    _, verdict = judge_sweep(dict.fromkeys(range(4), (1.0, 1.0)), rows=50)
    assert (verdict.best, verdict.chosen, verdict.hurts_from) == (3, 3, None)
    assert "No k that was tried is shown to hurt, up to k = 3." in verdict.sentences


def test_seeds_that_agree_do_not_make_less_than_a_row_count():
    _, verdict = judge_sweep({0: (0.95, 0.95), 1: (0.95 - 1e-4, 0.95 - 1e-4)}, rows=100)
    assert verdict.chosen == 1 and verdict.noise > 0


def test_score_that_is_not_defined_is_never_chosen():
    points, verdict = judge_sweep({0: (0.8,), 1: (math.nan,)}, rows=10)
    assert verdict.chosen == 0
    assert points[1].judgement == "not defined" and points[1].scores == (None,)
    with pytest.raises(EncError, match="not defined"):
        judge_sweep({0: (math.nan,)}, rows=10)


def test_single_k_is_not_compared():
    _, verdict = judge_sweep({4: (0.9, 0.91)}, rows=100)
    assert verdict.chosen == 4
    assert verdict.sentences == ("Only k = 4 was tried; there is nothing to compare it with.",)


def test_equal_scores_are_called_equal():
    _, verdict = judge_sweep({0: (0.9,), 1: (0.8,), 2: (0.9,)}, rows=10, sampling_errors=lambda best: {})
    assert "it ties with k = 0 for the best score" in verdict.sentences[0]


def test_means_of_the_same_scores_in_another_order_tie():
    scores = {0: (0.1, 0.7, 0.3), 2: (0.7, 0.3, 0.1)}
    assert np.mean(scores[0]) != np.mean(scores[2])
    points, verdict = judge_sweep(scores, rows=500)
    assert (verdict.best, verdict.chosen) == (2, 2) and points[0].loss == 0
    assert "it ties with k = 0 for the best score" in verdict.sentences[0]
