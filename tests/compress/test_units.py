"""Claims about heads and neurons as one thing."""

from typing import Any

import numpy as np
import pytest

from compress.removal import keep_units
from compress.units import unit_counts, why_some_stay
from encoder.config import ClassifierConfig
from encoder.prediction import predict_logits
from encoder.rows import TokenizedRows


@pytest.fixture
def rows(rows_of: Any) -> TokenizedRows:
    """Rows of other tokens but for the first, as every text has the same."""
    rows: TokenizedRows = rows_of([5, 9, 7, 12])
    rows.input_ids[rows.offsets[:-1]] = 1
    rows.token_type_ids[:] = 0
    return rows


def none_of(unit: Any, model: Any) -> Any:
    return keep_units(model, unit, [[] for _ in unit_counts(model.config, unit)])


def spread(model: Any, rows: TokenizedRows) -> float:
    """How far the logits of rows lie apart."""
    return float(np.ptp(predict_logits(model, rows), axis=0).max())


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_that_some_heads_stay_is_asked_for_where_all_texts_would_be_answered_alike(
    config_with: Any, classifier: Any, rows: TokenizedRows, pooling: Any
) -> None:
    config = config_with(classifier=ClassifierConfig(pooling=pooling))
    model = classifier(config)
    blind = spread(none_of("heads", model), rows) < 1e-6
    assert spread(model, rows) > 1e-3
    assert blind == (why_some_stay(config, "heads") is not None) == (pooling == "cls")
    attending = none_of("neurons", model)
    assert spread(attending, rows) > 1e-3 and why_some_stay(config, "neurons") is None
    assert why_some_stay(attending.config, "heads") is not None
    assert why_some_stay(none_of("heads", model).config, "neurons") is not None
