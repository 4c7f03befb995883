"""Every kind of task goes from a file to a folder and back through all three recipes."""

import random
from itertools import chain

import pytest

from recipes.evaluate import evaluate
from recipes.evaluate_config import EvaluateConfig
from recipes.finetune import finetune
from recipes.finetune_config import FinetuneConfig
from recipes.predict import predict
from recipes.predict_config import PredictConfig

WORDS = ("good", "bad", "film", "plot", "cast", "long")


def write(path, header, label_of):
    draw = random.Random(1)
    lines = [header]
    for _ in range(60):
        first, second = (draw.choices(WORDS, k=4) for _ in range(2))
        texts = [" ".join(first)] + ([" ".join(second)] if header.count(",") == 2 else [])
        lines.append(",".join([*texts, label_of(first, second)]))
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize(
    ("header", "label_of", "kind", "metrics"),
    [
        ("text,label", lambda a, b: "yes" if "good" in a else "no", "single_label", ["accuracy"]),
        (
            "text,label",
            lambda a, b: "|".join(sorted(set(a[:2]))),
            "multi_label",
            ["micro_f1", "subset_accuracy"],
        ),
        ("text,label", lambda a, b: str(a.count("good") + 0.5), "regression", ["pearson", "mse"]),
        (
            "text_a,text_b,label",
            lambda a, b: "same" if a[0] == b[0] else "other",
            "single_label",
            ["accuracy"],
        ),
        ("text_a,text_b,label", lambda a, b: str(len(set(a) & set(b)) / 4), "regression", ["spearman"]),
    ],
)
def test_task_goes_from_file_to_predictions(tiny_model, tmp_path, header, label_of, kind, metrics):
    data = write(tmp_path / "data.csv", header, label_of)
    output = tmp_path / "out"
    options = {"model": str(tiny_model), "data": str(data), "output": output, "precision": "fp32"}
    result = finetune(FinetuneConfig(**options, num_epochs=1, validation_fraction=0.3, latency=False))
    assert result.model.task == kind
    assert result.model.pair == header.startswith("text_a")
    assert set(metrics) <= set(result.scores["validation"])
    assert "test" not in result.scores

    scores = evaluate(EvaluateConfig(model=str(output), data=str(data))).scores
    assert list(scores) == ["validation"]  # the rows that were held out when it was trained on this file
    assert scores["validation"] == pytest.approx(result.scores["validation"], nan_ok=True)

    found = list(chain.from_iterable(predict(PredictConfig(model=str(output), input=data)).rows))
    assert len(found) == 60
    assert all((one.text_pair is not None) == result.model.pair for one in found)
    if kind == "regression":
        assert all(isinstance(one.value, float) for one in found)
    else:
        assert all(len(one.probabilities) == len(result.model.labels) for one in found)
    if kind == "multi_label":
        assert all(
            set(one.labels)
            == {label for label, p in zip(result.model.labels, one.probabilities, strict=True) if p > 0.5}
            for one in found
        )
