"""The model of this folder without enc. python example.py TEXT...; of pairs: FIRST SECOND FIRST SECOND..."""

import json
import sys
from pathlib import Path

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

folder, texts = Path(__file__).parent, sys.argv[1:] or sys.exit(__doc__)
config = json.loads((folder / "config.json").read_text(encoding="utf-8"))["enc"]
export, labels, pair = config["export"], config["task"]["labels"], config["task"]["pair"]
tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
tokenizer.enable_truncation(export["max_length"], direction=export["truncation_side"])
tokenizer.enable_padding()
rows = tokenizer.encode_batch(list(zip(texts[::2], texts[1::2], strict=True)) if pair else texts)
arrays = {"input_ids": [row.ids for row in rows], "attention_mask": [row.attention_mask for row in rows]}
arrays["token_type_ids"] = [[kind * export["segments"] for kind in row.type_ids] for row in rows]
session = onnxruntime.InferenceSession(str(folder / "model.onnx"), providers=["CPUExecutionProvider"])
(logits,) = session.run(None, {name: np.array(arrays[name], dtype=np.int64) for name in export["inputs"]})
exp = np.exp(logits - logits.max(axis=1, keepdims=True))
ways = {"softmax": exp / exp.sum(1, keepdims=True), "sigmoid": 1 / (1 + np.exp(-logits)), "identity": logits}
for values in ways[export["activation"]].tolist():
    print(json.dumps(dict(zip(labels, values, strict=True)) if labels else values[0], ensure_ascii=False))
