"""Nodes and initializers of an ONNX graph as they are added, and the pieces that every form of graph has."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from encoder.model import Classifier

CONTRIB = "com.microsoft"  # the domain of the operators that only ONNX Runtime has


class GraphBuilder:
    """A graph in the making; ``weights`` are the parameters of a model by name, float32.

    New names begin with ``prefix``, so that they can stand beside those of another graph.
    """

    def __init__(self, weights: dict[str, NDArray[np.float32]], *, prefix: str = "") -> None:
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []
        self._weights = weights
        self._prefix = prefix
        self._constants: dict[tuple[str, bytes, tuple[int, ...]], str] = {}

    @classmethod
    def of_model(cls, model: "Classifier") -> "GraphBuilder":
        """An empty graph with the parameters of ``model`` at hand.

        Where all tokens are of one type (RoBERTa), its row is added to those of the positions, so that the
        graph need not ask for types.
        """
        weights = {name: value.detach().cpu().float().numpy() for name, value in model.named_parameters()}
        if model.config.type_vocab_size == 1:
            table = "word" if model.config.position_embedding == "rotary" else "position"
            name = f"encoder.embeddings.{table}.weight"
            weights[name] = weights[name] + weights.pop("encoder.embeddings.token_type.weight")
        return cls(weights)

    def add(self, operator: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        """A node of which one output is used; returns that output's name."""
        return self.add_many(
            operator, inputs, [output or f"{self._prefix}{operator}_{len(self.nodes)}"], **attributes
        )[0]

    def add_many(
        self, operator: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any
    ) -> Sequence[str]:
        """A node with ``outputs``; an empty name stands for an input or output that is left out."""
        from onnx import helper

        name = f"{self._prefix}{operator}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), list(outputs), name=name, **attributes))
        return outputs

    def contrib(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """A node of one of ONNX Runtime's own operators."""
        return self.add(operator, *inputs, domain=CONTRIB, **attributes)

    def constant(self, array: NDArray[Any], name: str | None = None) -> str:
        """An initializer; equal unnamed ones are stored once."""
        from onnx import numpy_helper

        key = (array.dtype.str, array.tobytes(), array.shape) if name is None else (name, b"", ())
        if key not in self._constants:
            self._constants[key] = name or f"{self._prefix}constant_{len(self._constants)}"
            array = np.ascontiguousarray(array)
            self.initializers.append(numpy_helper.from_array(array, self._constants[key]))
        return self._constants[key]

    def integers(self, *values: int) -> str:
        """int64 [len(values)]."""
        return self.constant(np.array(values, dtype=np.int64))

    def number(self, value: float) -> str:
        """A float32 scalar."""
        return self.constant(np.array(value, dtype=np.float32))

    def parameter(self, name: str) -> str:
        """A parameter of the model, as it is."""
        return self.constant(self._weights[name], name)

    def has(self, name: str) -> bool:
        """Whether the model has such a parameter."""
        return name in self._weights

    def bias(self, module: str) -> str | None:
        """The bias of a linear layer; ``None`` where it has none."""
        return self.parameter(f"{module}.bias") if self.has(f"{module}.bias") else None

    def product(self, module: str, x: str) -> str | None:
        """x [..., in] · weight → [..., out], without the bias; ``None`` of a linear layer of width 0."""
        if self._weights[f"{module}.weight"].shape[1] == 0:
            return None
        return self.add("MatMul", x, self.matrix(module))

    def matrix(self, module: str) -> str:
        """The weight of a linear layer, [in, out]."""
        return self.constant(self._weights[f"{module}.weight"].T, f"{module}.weight")

    def linear(self, module: str, x: str, *, output: str | None = None) -> str:
        """x [..., in] → [..., out]. A linear layer of width 0 gives its bias, to be broadcast."""
        product, bias = self.product(module, x), self.bias(module)
        if product is None or bias is None:
            found = product or bias or ""
            return self.add("Identity", found, output=output) if output else found
        return self.add("Add", product, bias, output=output)

    def separate(self, module: str, parts: Sequence[str]) -> Sequence[str]:
        """Cut the linear layer ``module`` by its outputs into equal layers with the names ``parts``."""
        for kind in ("weight", "bias"):
            if self.has(f"{module}.{kind}"):
                arrays = np.split(self._weights[f"{module}.{kind}"], len(parts))
                self._weights |= {f"{part}.{kind}": array for part, array in zip(parts, arrays, strict=True)}
        return parts

    def take(self, x: str, index: str) -> str:
        """Of x [B, T, …] the token ``index`` int64 [B, 1] of each row: [B, 1, …]."""
        return self.add("Unsqueeze", self.add("GatherND", x, index, batch_dims=1), self.integers(1))

    def sum(self, *terms: str) -> str:
        """The sum of all terms, before a norm.

        As Sum, because ONNX Runtime fuses Add and LayerNormalization into one operator that is slower on a
        CPU than the two (docs/decisions/0008).
        """
        return self.add("Sum", *terms)

    def layer_norm(self, module: str, x: str, epsilon: float) -> str:
        """LayerNorm over the last axis; what the model does not normalise stays as it is."""
        if not self.has(f"{module}.weight"):
            return x
        bias = self.bias(module)
        inputs = [x, self.parameter(f"{module}.weight"), *([] if bias is None else [bias])]
        return self.add("LayerNormalization", *inputs, axis=-1, epsilon=epsilon)
