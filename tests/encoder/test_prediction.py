import numpy as np
import torch

from encoder.batches import Batch
from encoder.prediction import predict_logits


def test_logits_come_in_the_order_of_the_rows(make_classifier, make_rows) -> None:
    model, rows = make_classifier(), make_rows([5, 1, 17, 8, 8, 3])
    seen: list[int] = []
    logits = predict_logits(model, rows, batch_size=2, on_rows=seen.append)
    with torch.inference_mode():
        expected = model(Batch.from_rows(rows)).numpy()
    assert logits.dtype == np.float32 and np.allclose(logits, expected, atol=1e-6)
    assert seen == [2, 2, 2]


def test_no_rows_give_no_logits(make_classifier, make_rows) -> None:
    assert predict_logits(make_classifier(), make_rows([])).shape == (0, 3)


def test_bf16_is_close_to_fp32(make_classifier, make_rows) -> None:
    model, rows = make_classifier(), make_rows([5, 1, 17])
    difference = predict_logits(model, rows, precision="bf16") - predict_logits(model, rows)
    assert 0 < np.abs(difference).max() < 0.1
