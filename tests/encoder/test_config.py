import pytest
from pydantic import ValidationError

from encoder.config import LayerShape


def test_the_offset_takes_positions_away(make_config) -> None:
    assert make_config(max_position_embeddings=514, position_offset=2).max_tokens == 512
    assert make_config(max_position_embeddings=514, position_offset=4).max_tokens == 510


def test_an_offset_that_leaves_no_position_is_refused(make_config) -> None:
    with pytest.raises(ValidationError, match="leaves no position"):
        make_config(max_position_embeddings=4, position_offset=4)


@pytest.mark.parametrize("heads", [(1, 0), (0, 0), (-1,)])
def test_heads_are_increasing_indices(heads: tuple[int, ...]) -> None:
    with pytest.raises(ValidationError, match="increasing"):
        LayerShape(heads=heads, head_size=4, intermediate_size=4)


def test_unknown_keys_are_refused(make_config) -> None:
    with pytest.raises(ValidationError, match="hiden_size"):
        make_config(hiden_size=3)


def test_a_config_survives_json(make_config) -> None:
    config = make_config(layers=(LayerShape(heads=(0, 2), head_size=4, intermediate_size=0),))
    assert type(config).model_validate_json(config.model_dump_json()) == config
    assert config.layers[0].num_attention_heads == 2
