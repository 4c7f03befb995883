"""Claims about candidates that are ordered for a query."""

import pytest

from encoder.errors import ConfigError
from encoder.task import Task
from recipes.predict import predict
from recipes.predict_config import PredictConfig
from recipes.prediction import Prediction
from recipes.ranking import choose_ranking, rank

PAIRS = Task(kind="single_label", labels=("other", "same"), pair=True)
VALUE = Task(kind="regression", pair=True)


def test_best_comes_first_and_of_equals_the_earlier():
    values = [0.5, 2.0, -1.0, 2.0, 0.0]
    chunks = [[Prediction("q", str(i), value=v) for i, v in enumerate(values)]]
    (ordered,) = rank(chunks, choose_ranking(VALUE, None, "m"), None)
    assert [one.text_pair for one in ordered] == ["1", "3", "0", "4", "2"]
    assert [one.score for one in ordered] == [2.0, 2.0, 0.5, 0.0, -1.0]
    (best,) = rank(chunks, choose_ranking(VALUE, None, "m"), 2)
    assert [one.text_pair for one in best] == ["1", "3"]


def test_two_labels_rank_by_the_second_and_more_by_the_one_that_is_named():
    one = Prediction("q", "c", ("other",), (0.7, 0.3))
    assert choose_ranking(PAIRS, None, "m").score(one) == 0.3
    assert choose_ranking(PAIRS, "other", "m").score(one) == 0.7
    with pytest.raises(ConfigError, match="its labels are 'other', 'same'; did you mean 'same'"):
        choose_ranking(PAIRS, "sane", "m")
    three = Task(kind="single_label", labels=("a", "b", "c"), pair=True)
    with pytest.raises(ConfigError, match="--rank-by is missing"):
        choose_ranking(three, None, "m")
    with pytest.raises(ConfigError, match="gives a value"):
        choose_ranking(VALUE, "same", "m")


def test_candidates_are_scored_as_pairs_with_the_query(finetuned, tmp_path):
    texts = ["a good film", "bad plot", "", "lovely great bright"]
    (tmp_path / "candidates.txt").write_text("".join(f"{text}\n" for text in texts))
    options = {"model": finetuned.output, "pair": True}
    pairs = tuple(part for text in texts for part in ("the film", text))
    (plain,) = predict(PredictConfig(texts=pairs, **options)).rows
    found = predict(PredictConfig(query="the film", candidates=tmp_path / "candidates.txt", top=3, **options))
    assert found.ranked
    (ordered,) = found.rows
    expected = sorted(plain, key=lambda one: -one.probabilities[1])[:3]
    assert [one.text_pair for one in ordered] == [one.text_pair for one in expected]
    assert [one.score for one in ordered] == pytest.approx([one.probabilities[1] for one in expected])


def test_model_of_single_texts_ranks_nothing(finetuned, tmp_path):
    (tmp_path / "c.txt").write_text("x\n")
    with pytest.raises(ConfigError, match="takes single texts"):
        predict(PredictConfig(model=finetuned.output, query="q", candidates=tmp_path / "c.txt"))
