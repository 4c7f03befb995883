"""What tests of recipes and commands share: a tiny random encoder, and data it can learn from."""

import csv
import json
import os
import random
from pathlib import Path

import pytest

# One thread for the tests' tiny models, here and in the processes they start: waking a second one costs more
# than it computes. Torch is imported after this; a caller's own setting stands.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Tests leave nothing in the user's cache, and what they read is as wide as it has to be.
os.environ["ENC_CACHE"] = ""
os.environ.pop("COLUMNS", None)

GOOD = ("good", "lovely", "great", "bright")
BAD = ("bad", "awful", "dull", "poor")
FILLERS = ("the", "film", "was", "a", "story", "and", "very", "it", "plot", "cast", "slow", "long")
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory) -> Path:
    """The folder of a random BERT encoder: 3 layers, hidden size 32, 64 positions, a WordPiece vocabulary."""
    from encoder.checkpoint import save_classifier
    from encoder.model import Classifier, initialise_
    from encoder.model_folder import read_config, read_tokenizer
    from encoder.task import Task

    folder = tmp_path_factory.mktemp("models") / "tiny"
    folder.mkdir()
    vocabulary = [*SPECIAL, *GOOD, *BAD, *FILLERS, *"abcdefghijklmnopqrstuvwxyz", "##a", "##s"]
    config = {
        "model_type": "bert",
        "architectures": ["BertModel"],
        "vocab_size": len(vocabulary),
        "hidden_size": 32,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "intermediate_size": 64,
        "max_position_embeddings": 64,
        "type_vocab_size": 2,
        "hidden_act": "gelu",
        "initializer_range": 0.2,
    }
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    (folder / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": True}))
    (folder / "config.json").write_text(json.dumps(config))
    model = Classifier(read_config(folder), Task(kind="single_label", labels=("a", "b")))
    initialise_(model, model.config, 0)
    save_classifier(model, read_tokenizer(folder), folder)
    (folder / "config.json").write_text(json.dumps(config))  # an encoder, as pretraining leaves it
    return folder


@pytest.fixture(scope="session")
def reviews(tmp_path_factory) -> Path:
    """A folder of train.csv (80 rows), validation.csv (24) and test.csv (24), labels neg and pos."""
    folder = tmp_path_factory.mktemp("data") / "reviews"
    folder.mkdir()
    draw = random.Random(0)
    for split, rows in (("train", 80), ("validation", 24), ("test", 24)):
        with (folder / f"{split}.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["text", "label"])
            for row in range(rows):
                label, words = (("pos", GOOD), ("neg", BAD))[row % 2]
                text = draw.choices(FILLERS, k=draw.randint(2, 8)) + draw.choices(words, k=3)
                draw.shuffle(text)
                writer.writerow([" ".join(text), label])
    return folder
