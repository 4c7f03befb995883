"""Claims about encoders that are described and not yet there."""

import pytest

from encoder.errors import ConfigError
from recipes.encoder_shape import BUILTIN, is_shape, read_shape

NEEDED = "num_hidden_layers = 3\nhidden_size = 32\nnum_attention_heads = 4\n"


def read(tmp_path, text):
    (tmp_path / "own.toml").write_text(text)
    return read_shape(str(tmp_path / "own.toml"), vocab_size=99, option="--config")


@pytest.mark.parametrize("name", BUILTIN)
def test_names_stand_for_shapes(name):
    layers, hidden, heads = BUILTIN[name]
    config = read_shape(name, vocab_size=50, option="--config")
    assert (config.num_hidden_layers, config.hidden_size, config.vocab_size) == (layers, hidden, 50)
    assert config.layers[0].num_attention_heads == heads
    assert config.layers[0].intermediate_size == 4 * hidden
    assert is_shape(name)


def test_a_file_says_what_differs(tmp_path):
    config = read(tmp_path, NEEDED + 'intermediate_size = 40\nnorm = "pre"\nhidden_dropout = 0.0\n')
    assert config.num_hidden_layers == 3
    assert (config.layers[0].head_size, config.layers[0].intermediate_size) == (8, 40)
    assert (config.norm, config.hidden_dropout, config.vocab_size) == ("pre", 0.0, 99)
    assert config.max_tokens == 512
    assert is_shape("own.TOML") and not is_shape("runs/own")


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ("hidden_size = 32\nnum_attention_heads = 0\n",
         ["num_hidden_layers is missing", "num_attention_heads is 0; expected a whole number"]),
        (NEEDED + "num_heads = 4\n", ["unknown key 'num_heads'"]),
        (NEEDED + "hidden_sizes = 4\n", ["unknown key 'hidden_sizes'; did you mean 'hidden_size'?"]),
        (NEEDED + "vocab_size = 4\n", ["unknown key 'vocab_size'"]),
        (NEEDED + 'norm = "middle"\nhidden_dropout = 2\n', ["norm: .*'middle'", "hidden_dropout: .*found 2"]),
        (NEEDED.replace("32", "30"), ["hidden_size 30 is not a multiple of num_attention_heads 4"]),
        ("norm = ", ["not a TOML file"]),
    ],
)  # fmt: skip
def test_all_that_is_wrong_with_a_file_is_told(tmp_path, text, messages):
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, text)
    for message in messages:
        assert caught.match(rf"own\.toml: .*{message}" if "not a TOML" not in message else message)


def test_a_misspelt_key_hides_no_wrong_value_and_is_not_missing_as_well(tmp_path):
    text = NEEDED.replace("hidden_size", "hiden_size") + 'norm = "prae"\nactivation = "gelo"\n'
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, text)
    first, *more = str(caught.value).splitlines()
    assert "unknown key 'hiden_size'; did you mean 'hidden_size'?" in first
    assert len(more) == 2 and "norm: " in more[0] and "activation: " in more[1]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("minni", r"--config minni: no such encoder.*did you mean 'mini'"),
        ("nowhere.toml", r"--config nowhere.toml: cannot be read"),
    ],
)
def test_what_is_not_there_says_so(source, message):
    with pytest.raises(ConfigError, match=message):
        read_shape(source, vocab_size=9, option="--config")
