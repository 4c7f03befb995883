"""What sublayers of a graph read and write: one sum, or the sources of attention residuals side by side.

The same as ``encoder.residual`` says in torch.
"""

from dataclasses import dataclass, replace

from compress.graph_builder import GraphBuilder
from encoder.config import EncoderConfig


@dataclass(frozen=True)
class GraphStream:
    """``growing`` [B, T, D] is what outputs are added to; ``None`` where the next one is a source of its own.

    ``finished`` [B, T, n, D] are n sources that stay as they are, with ``scales`` [B, T, n, 1], 1/RMS of
    each; without attention residuals there are none.
    """

    growing: str | None
    finished: str | None = None
    scales: str | None = None


class StreamWriter:
    """Writes the nodes that read a stream and write to it, as ``config`` has it."""

    def __init__(self, builder: GraphBuilder, config: EncoderConfig) -> None:
        self._builder, self._config = builder, config

    def begin(self, embedded: str) -> GraphStream:
        """The stream that starts with the embeddings [B, T, D]."""
        stream = GraphStream(embedded)
        return stream if self._config.residual == "add" else self._finish(stream)

    def read(self, stream: GraphStream, module: str) -> str:
        """What the residual ``module`` makes of it, [B, T, D], before any norm."""
        builder = self._builder
        if stream.finished is None:
            assert stream.growing is not None
            return stream.growing
        if not builder.has(f"{module}.query"):  # of the first sublayer, which has one source
            return builder.add("Squeeze", stream.finished, builder.integers(2))
        stream = self._finish(stream)
        query = builder.parameter(f"{module}.query")
        keys = builder.add("Mul", stream.finished or "", query)
        products = builder.add("ReduceSum", keys, builder.integers(-1), keepdims=1)  # [B, T, n, 1]
        scores = builder.add("Mul", products, stream.scales or "")
        weights = builder.add("Transpose", builder.add("Softmax", scores, axis=2), perm=[0, 1, 3, 2])
        mixed = builder.add("MatMul", weights, stream.finished or "")  # [B, T, 1, D]
        return builder.add("Squeeze", mixed, builder.integers(2))

    def write(self, stream: GraphStream, sublayer: int, product: str | None, bias: str | None) -> GraphStream:
        """The stream with an output: product [B, T, D] + bias [D], as far as there are any."""
        builder = self._builder
        begins = self._config.num_sources(sublayer + 1) > self._config.num_sources(sublayer)
        terms = [term for term in (product, bias) if term is not None]
        if not begins:
            assert stream.growing is not None
            return replace(stream, growing=builder.sum(stream.growing, *terms) if terms else stream.growing)
        stream = self._finish(stream)
        if product is None:  # nothing but a bias, or nothing: for each token
            one = builder.add("Gather", stream.finished or "", builder.integers(0), axis=2)  # [B, T, 1, D]
            one = builder.add("Squeeze", one, builder.integers(2))
            terms.append(builder.add("Mul", one, builder.number(0.0)))
        return replace(stream, growing=builder.sum(*terms))

    def take(self, stream: GraphStream, first: str) -> GraphStream:
        """Of each row the token ``first`` int64 [B, 1]: T is 1 afterwards."""
        return GraphStream(
            *(
                None if part is None else self._builder.take(part, first)
                for part in (stream.growing, stream.finished, stream.scales)
            )
        )

    def _finish(self, stream: GraphStream) -> GraphStream:
        """What grows becomes one of the finished sources."""
        if stream.growing is None:
            return stream
        builder, D = self._builder, self._config.hidden_size
        source = builder.add("Unsqueeze", stream.growing, builder.integers(2))  # [B, T, 1, D]
        square = builder.add("Mul", source, source)
        total = builder.add("ReduceSum", square, builder.integers(-1), keepdims=1)
        mean = builder.add("Mul", total, builder.number(1.0 / D))
        root = builder.add(
            "Sqrt", builder.add("Add", mean, builder.number(self._config.layer_norm_eps))
        )  # [B, T, 1, 1]
        scale = builder.add("Div", builder.number(1.0), root)
        if stream.finished is None or stream.scales is None:
            return GraphStream(None, source, scale)
        return GraphStream(
            None,
            builder.add("Concat", stream.finished, source, axis=2),
            builder.add("Concat", stream.scales, scale, axis=2),
        )
