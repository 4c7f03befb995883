import pytest
from pydantic import ValidationError

from encoder.config import LayerShape, usual_intermediate_size


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


def test_rotary_positions_need_an_even_head_size(make_config) -> None:
    layers = (LayerShape(heads=(0, 1), head_size=3, intermediate_size=4),)
    with pytest.raises(ValidationError, match=r"layer 0: rotary positions turn pairs.*head size 3 is odd"):
        make_config(layers=layers, position_embedding="rotary")


def test_only_pre_norm_can_do_without_a_norm_before_attention(make_config) -> None:
    bare = LayerShape(heads=(0,), head_size=4, intermediate_size=4, attention_norm=False)
    whole = bare.model_copy(update={"attention_norm": True})
    with pytest.raises(ValidationError, match="layer 0 has no attention_norm"):
        make_config(layers=(bare,))
    make_config(layers=(bare, whole), norm="pre", residual="attention")
    with pytest.raises(ValidationError, match="only the first may lack it"):
        make_config(layers=(whole, bare), norm="pre", residual="attention")


@pytest.mark.parametrize(
    ("width", "gated", "size"), [(384, False, 1536), (384, True, 1024), (768, True, 2048), (48, True, 128)]
)
def test_a_gated_block_has_as_many_parameters_as_a_plain_one(width: int, gated: bool, size: int) -> None:
    assert usual_intermediate_size(width, gated=gated) == size
    assert (3 if gated else 2) * size == pytest.approx(8 * width, rel=0.05)
