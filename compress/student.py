"""Students: some of a teacher's layers, or a thinner encoder that starts from random numbers."""

from typing import TYPE_CHECKING, Literal

from compress.layer_choice import alternate_layers, bottom_layers, important_layers
from encoder.config import EncoderConfig, usual_intermediate_size
from encoder.errors import CompressionError
from encoder.rows import TokenizedRows

if TYPE_CHECKING:
    from encoder.model import Classifier

LayerChoice = Literal["alternate", "first", "last", "top", "importance"]


def choose_layers(
    teacher: "Classifier", keep: int, choice: LayerChoice, rows: TokenizedRows, *, device: str = "cpu"
) -> list[int]:
    """Which ``keep`` layers of ``teacher`` a student starts from.

    ``alternate``: every second (third …) with the last among them, as DistilBERT does (Sanh et al. 2019,
    section 3). ``first``: the lowest. ``last``, also called ``top``: the highest. ``importance``: one goes
    after another, each time that without which the loss of ``rows``, which have labels, is lowest.
    """
    count = teacher.config.num_hidden_layers
    if choice == "importance":
        return important_layers(teacher, rows, keep, device=device)[0]
    if choice == "first":
        return bottom_layers(keep)
    if choice in ("last", "top"):
        return list(range(count - keep, count))
    return alternate_layers(count, keep)


def matching_states(teacher_layers: int, student_layers: int) -> dict[int, int]:
    """For each hidden state of a student but the embeddings, that of the teacher to be like, at even steps.

    The last matches the last. Numbers as in ``compress.watching``: 6 layers of 12 are {1: 2, 2: 4, … 6: 12}.
    """
    layers = alternate_layers(teacher_layers, student_layers)
    return {number: layer + 1 for number, layer in enumerate(layers, start=1)}


def shrink_steps(teacher_layers: int, student_layers: int, steps: int) -> list[int]:
    """How many layers are left after each of so many equal steps: 12, 6, 2 → [9, 6]."""
    gone = teacher_layers - student_layers
    return [teacher_layers - round(gone * step / steps) for step in range(1, steps + 1)]


def thinner_config(
    config: EncoderConfig,
    *,
    num_layers: int | None = None,
    hidden_size: int | None = None,
    intermediate_size: int | None = None,
    num_heads: int | None = None,
) -> EncoderConfig:
    """``config`` with other sizes and all layers alike; what is not given stays, or keeps its proportion.

    Heads keep their size where the width allows it; neurons are as many as usual for the width.

    Raises:
        CompressionError: the heads do not share the width evenly.
    """
    first = max(config.layers, key=lambda shape: shape.num_attention_heads)
    D = hidden_size or config.hidden_size
    H = num_heads or max(1, D // first.head_size)
    if D % H:
        raise CompressionError(
            f"a hidden size of {D} cannot be shared by {H} heads; give a number of heads that divides {D}"
        )
    F = intermediate_size or usual_intermediate_size(D, gated=config.gated)
    sizes = {"heads": tuple(range(H)), "head_size": D // H, "intermediate_size": F}
    # A layer attends as that of the same number does, near or far; more layers go on as the last ones do.
    count, last = num_layers or config.num_hidden_layers, config.num_hidden_layers - 1
    layers = tuple(config.layers[min(number, last)].model_copy(update=sizes) for number in range(count))
    projected = config.embedding_size != config.hidden_size
    return config.model_copy(
        update={
            "hidden_size": D,
            "embedding_size": min(D, config.embedding_size) if projected else D,
            "layers": layers,
        }
    )


def draw_student(teacher: "Classifier", config: EncoderConfig, seed: int) -> "Classifier":
    """A classifier for the teacher's task that starts from random numbers."""
    from encoder.model import Classifier, initialise_

    student = Classifier(config, teacher.task)
    initialise_(student, config, seed)
    student.new_parameters = tuple(name for name, _ in student.named_parameters())
    return student.eval()
