"""A pre-norm encoder turned into one with attention residuals, which starts as the same function."""

from typing import TYPE_CHECKING, TypeVar

from encoder.config import EncoderConfig, ResidualKind
from encoder.errors import ConfigError

if TYPE_CHECKING:
    from encoder.language_model import MaskedLanguageModel
    from encoder.model import Classifier

Model = TypeVar("Model", "Classifier", "MaskedLanguageModel")


def config_with_residual(
    config: EncoderConfig, kind: ResidualKind, block_size: int | None, where: str
) -> EncoderConfig:
    """``config`` with another residual; ``where`` names the model in errors.

    With queries at zero every mix is the mean of its sources, the sum divided by their number; a sublayer
    reads it through a LayerNorm, which undoes the factor exactly where its epsilon is divided by the square
    of it (``encoder.residual.norm_eps``). So the function is the same, for full attention and any blocks.

    Raises:
        ConfigError: the model is post-norm, or has attention residuals already.
    """
    if config.residual != "add":
        raise ConfigError(
            f"--residual {kind}: {where} has attention residuals already ({config.residual}), and what its "
            "sublayers have learnt to take of each other has no equal in another form"
        )
    if config.norm == "post":
        raise ConfigError(
            f"--residual {kind}: {where} is post-norm: its LayerNorms sit on the stream itself, so that the "
            "stream is no sum of sublayer outputs that could be weighed anew; only a pre-norm encoder can be "
            "converted (ModernBERT is one, and any that is made with norm = 'pre')"
        )
    bare = [number for number, layer in enumerate(config.layers) if not layer.attention_norm and number]
    if bare:
        raise ConfigError(
            f"--residual {kind}: layer {bare[0]} of {where} reads the stream without a LayerNorm, which "
            "would see that a mean is smaller than a sum"
        )
    wanted = {"residual": kind, "residual_block_size": block_size if kind == "block_attention" else None}
    return EncoderConfig.model_validate(config.model_dump() | wanted)


def with_residual(model: Model, config: EncoderConfig) -> Model:
    """A new model of ``config``, made by ``config_with_residual``, with the parameters of ``model``.

    The queries over depth start at zero. ``new_parameters`` stays what it is: they are not random.
    """
    made = model.in_shape(config).to(next(model.parameters()).device)
    state = model.state_dict()
    for name, tensor in made.state_dict().items():
        if name not in state:
            state[name] = tensor.new_zeros(tensor.shape)
    made.load_state_dict(state)
    made.new_parameters = model.new_parameters
    return made.train(model.training)
