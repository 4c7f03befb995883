"""What was removed put back as zeros: Transformers opens it with equal logits."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForSequenceClassification
from transformers.utils import logging

from compress.removal import keep_layers, keep_units
from compress.standard_shape import why_not_standard, with_zeros
from encoder.checkpoint import save_classifier
from encoder.prediction import predict_logits
from tests.compress.conftest import MODERN, NoTokenizer

logging.set_verbosity_error()
logging.disable_progress_bar()

FAMILIES: dict[str, dict[str, Any]] = {
    "bert": {},
    "roberta": {"family": "roberta", "position_offset": 2, "pad_token_id": 1, "type_vocab_size": 1},
    "distilbert": {"family": "distilbert", "type_vocab_size": 0},
    "electra": {"family": "electra", "embedding_size": 8},
    "modernbert": MODERN | {"family": "modernbert"},
}


def prune(model):
    """Layer 0 loses a head and neurons, layer 1 all heads, layer 2 all neurons; layer 3 goes."""
    model = keep_units(keep_layers(model, [0, 1, 2]), "heads", [[1, 2], [], [3]])
    return keep_units(model, "neurons", [[4, 7, 9, 30], range(32), []])


@pytest.mark.parametrize("changes", FAMILIES.values(), ids=FAMILIES.keys())
def test_pruned_model_opens_in_transformers_with_equal_logits(
    config_with, classifier, rows_of, tmp_path: Path, changes
) -> None:
    config = config_with(**{"layers": config_with().layers[:1] * 4} | changes)
    activation = {"distilbert": "relu", "electra": "gelu"}.get(config.family, "tanh")
    config = config.model_copy(
        update={"classifier": config.classifier.model_copy(update={"activation": activation})}
        if config.family != "modernbert"
        else {}
    )
    pruned = prune(classifier(config))
    with torch.no_grad():
        for parameter in pruned.parameters():
            parameter.add_(0.05 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)))
    save_classifier(with_zeros(pruned), NoTokenizer(), tmp_path)  # type: ignore[arg-type]
    theirs, report = AutoModelForSequenceClassification.from_pretrained(tmp_path, output_loading_info=True)
    assert not any(report.values()), report
    assert theirs.config.num_hidden_layers == 3

    rows = rows_of([7, 1, 12])
    if config.type_vocab_size < 2:
        rows.token_type_ids[:] = 0
    rows.input_ids[rows.input_ids == config.pad_token_id] = 5  # Transformers counts positions past padding
    expected = predict_logits(pruned, rows)
    for row in range(len(rows)):
        one = rows.select([row])
        inputs = {"input_ids": torch.from_numpy(one.input_ids.astype(np.int64))[None]}
        if config.type_vocab_size:
            inputs["token_type_ids"] = torch.from_numpy(one.token_type_ids.astype(np.int64))[None]
        with torch.no_grad():
            found = theirs.eval()(**inputs).logits.numpy()
        assert found[0] == pytest.approx(expected[row], abs=1e-5)
    assert np.ptp(expected) > 0.05


def test_a_whole_model_stays_what_it_is(config_with, classifier) -> None:
    model = classifier(config_with())
    same = with_zeros(model)
    assert same.config == model.config
    assert all(
        torch.equal(one, other) for one, other in zip(same.parameters(), model.parameters(), strict=True)
    )


def test_why_there_is_no_standard_form_is_said(config_with) -> None:
    assert why_not_standard(config_with()) is None
    assert "is enc's own" in (why_not_standard(config_with(family="enc")) or "")
    assert "normalise before" in (why_not_standard(config_with(norm="pre")) or "")
    shape = config_with().layers[0]
    wide = shape.model_copy(update={"head_size": 8})
    assert "do not divide" in (why_not_standard(config_with(layers=(shape, wide))) or "")
    assert "a head number 3" in (why_not_standard(config_with(layers=(wide, wide))) or "")
