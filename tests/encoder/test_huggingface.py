import pytest

from encoder import huggingface
from encoder.config import LayerShape
from encoder.errors import CheckpointError
from encoder.task import Task

BERT = {
    "model_type": "bert",
    "vocab_size": 30,
    "hidden_size": 12,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 20,
    "max_position_embeddings": 514,
}
TASK = Task(kind="single_label", labels=("a", "b"), pair=True)


def config_of(raw: dict[str, object]):
    return huggingface.config_from_json(raw, "config.json")


@pytest.mark.parametrize("family", huggingface.FAMILIES)
def test_config_json_survives_reading_and_writing(family: str) -> None:
    raw = BERT | {"model_type": family, "embedding_size": 8, "pad_token_id": 1, "hidden_act": "gelu_new"}
    if family == "modernbert":
        raw |= {"hidden_activation": "gelu_new", "local_attention": 10, "local_rope_theta": 3.0}
    if family == "distilbert":
        raw |= {"dim": 12, "n_heads": 3, "n_layers": 2, "hidden_dim": 20, "activation": "relu"}
    config = config_of(raw)
    written = huggingface.config_to_json(config, TASK)
    assert config_of(written) == config
    assert huggingface.task_from_json(written, "config.json") == TASK


def test_what_a_family_cannot_express_is_written_as_our_own(make_config) -> None:
    pruned = (LayerShape(heads=(1,), head_size=4, intermediate_size=3),)
    for changes in ({"layers": pruned}, {"norm": "pre"}, {"position_embedding": "sinusoidal"}):
        config = make_config(**changes)
        raw = huggingface.config_to_json(config, TASK)
        assert raw["model_type"] == "enc" and "architectures" not in raw
        assert config_of(raw) == config


def test_roberta_counts_positions_from_its_pad_id() -> None:
    for pad, expected in ((None, 512), (1, 512), (3, 510), (0, 513)):
        raw = BERT | {"model_type": "roberta"} | ({} if pad is None else {"pad_token_id": pad})
        assert config_of(raw).max_tokens == expected


def test_modernbert_is_read_in_both_its_spellings() -> None:
    raw = BERT | {"model_type": "modernbert", "num_hidden_layers": 5, "local_attention": 8}
    old = config_of(
        raw | {"global_attn_every_n_layers": 2, "global_rope_theta": 900.0, "local_rope_theta": 30.0}
    )
    new = config_of(raw | {
        "layer_types": ["full_attention", "sliding_attention"] * 2 + ["full_attention"],
        "rope_parameters": {
            "full_attention": {"rope_theta": 900.0}, "sliding_attention": {"rope_theta": 30.0}
        },
    })  # fmt: skip
    assert old == new
    assert [layer.window for layer in old.layers] == [None, 4, None, 4, None]
    assert [layer.rope_theta for layer in old.layers] == [900.0, 30.0, 900.0, 30.0, 900.0]
    shared = config_of(raw | {"global_rope_theta": 900.0, "local_rope_theta": None})
    assert {layer.rope_theta for layer in shared.layers} == {900.0}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"layer_types": ["full_attention", "sliding"]}, "layer type 'sliding' is not supported"),
        ({"layer_types": ["full_attention"]}, "1 layer_types of 2 layers"),
        ({"rope_scaling": {"rope_type": "yarn"}}, "rotary positions of the type 'yarn'"),
        ({"rope_parameters": {"full_attention": {"rope_type": "linear"}}}, "of the type 'linear'"),
        ({"classifier_activation": "mish"}, "classifier_activation 'mish' is not supported"),
        ({"hidden_activation": "mish"}, "activation 'mish' is not supported"),
    ],
)
def test_what_of_modernbert_is_not_known_is_refused(change, message) -> None:
    with pytest.raises(CheckpointError, match=message):
        config_of(BERT | {"model_type": "modernbert"} | change)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"position_embedding_type": "relative_key"}, "relative_key"),
        ({"hidden_act": "mish"}, "'mish' is not supported; supported are gelu"),
        ({"is_decoder": True}, "decoder"),
        ({"pruned_heads": {"0": [1]}}, "pruned_heads"),
        ({"num_attention_heads": 5}, "not a multiple"),
        ({"vocab_size": 0}, "vocab_size: .*greater than 0"),
        ({"hidden_size": "12"}, "hidden size is '12'; expected a whole number"),
        ({"num_hidden_layers": None}, "number of layers is None"),
        ({"intermediate_size": "wide"}, "intermediate_size: .*integer"),
    ],
)
def test_what_we_would_compute_wrongly_is_refused(change, message) -> None:
    with pytest.raises(CheckpointError, match=message):
        config_of(BERT | change)


def test_only_layer_norms_are_renamed_from_legacy_spellings() -> None:
    assert huggingface.modern_name("bert.x.LayerNorm.gamma") == "bert.x.LayerNorm.weight"
    assert huggingface.modern_name("LayerNorm.beta") == "LayerNorm.bias"
    for name in ("head.gamma", "layer.gamma_gate", "LayerNorm.gamma.x", "encoder.beta", "x.MyLayerNorm.beta"):
        assert huggingface.modern_name(name) == name


def test_none_of_our_names_can_be_mistaken_for_a_legacy_one(make_classifier) -> None:
    for name, _ in make_classifier().named_parameters():
        assert "gamma" not in name and "beta" not in name


def test_a_bare_encoder_gets_its_prefix_back() -> None:
    names = huggingface.with_prefix(["embeddings.LayerNorm.gamma", "pooler.dense.weight"], config_of(BERT))
    assert list(names.values()) == ["bert.embeddings.LayerNorm.weight", "bert.pooler.dense.weight"]


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ({"architectures": ["BertModel"]}, None),
        ({"architectures": None}, None),
        (
            {"id2label": {"1": "pos", "0": "neg"}},
            Task(kind="single_label", labels=("neg", "pos")),
        ),
        ({"id2label": {"0": "LABEL_0"}}, Task(kind="regression")),
        ({"num_labels": 3}, Task(kind="single_label", labels=("LABEL_0", "LABEL_1", "LABEL_2"))),
        ({"enc": None, "num_labels": 1}, Task(kind="regression")),
        (
            {"id2label": {"0": "x"}, "problem_type": "multi_label_classification"},
            Task(kind="multi_label", labels=("x",)),
        ),
    ],
)
def test_the_task_of_a_foreign_folder_is_read_from_its_labels(raw, expected) -> None:
    defaults = {"architectures": ["BertForSequenceClassification"]}
    assert huggingface.task_from_json(BERT | defaults | raw, "config.json") == expected


def test_labels_keep_their_order_beyond_ten() -> None:
    names = tuple(f"c{i}" for i in range(12))
    raw = BERT | {
        "architectures": ["BertForSequenceClassification"],
        "id2label": {str(i): name for i, name in reversed(list(enumerate(names)))},
    }
    task = huggingface.task_from_json(raw, "config.json")
    assert task is not None and task.labels == names


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({"id2label": {"0": "a", "1": "a"}}, "label names repeat"),
        ({"id2label": {"zero": "a", "one": "b"}}, "not of the kind expected"),
        ({"id2label": ["a", "b"]}, "not of the kind expected"),
        ({"id2label": {"0": "a"}, "problem_type": "single_label_classification"}, "at least 2 labels"),
        ({"enc": {"task": {"kind": "single_label", "lables": []}}}, "lables: Extra inputs"),
    ],
)
def test_labels_that_make_no_task_are_refused(raw, message) -> None:
    with pytest.raises(CheckpointError, match=message):
        huggingface.task_from_json(BERT | {"architectures": ["BertForSequenceClassification"]} | raw, "x")
