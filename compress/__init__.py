"""Ways to make an encoder smaller or faster, and how that is measured.

Measuring: ``latency`` (how long, in a ``worker`` process of its own that ``process`` starts; the inputs come
from ``workload``, the ways to run from ``runtimes``, the statistics from ``timing``), ``size`` (how big),
``memory``, ``contention`` (whether other processes were in the way), and ``machine`` (where all that was
found). ``comparison`` measures several models in turns and ``paired`` says how sure their ratio is;
``profile`` shows where the time goes, with a ``stopwatch`` in each sublayer; ``uncertainty`` says how sure a
score is; ``attention_view`` shows what heads and sublayers do with one text; ``embedders`` turn texts into
vectors in any runtime; ``pipeline`` counts, on paper, what block sums cost a pipeline of devices.

Pruning: ``pruning`` scores, chooses, removes and repairs heads or neurons (``units``), with ``gates`` to
silence them, ``importance``, ``selection``, ``removal`` and the least-squares ``repair``; ``layer_choice``
says which whole layers go, ``proof`` that the result is what it should be.

Distilling: ``student`` (what it starts from), ``teacher`` (its targets, in one pass, by means of
``watching``), ``distillation`` (the losses, as an objective of training).

Running: ``onnx_graph`` writes a classifier as an ONNX graph with a ``graph_builder``, in the parts of
``portable_graph`` or of ``fused_graph``, with its residuals in ``graph_stream``; ``quantization`` makes it
int8 (``quantized_graph``) with scales found at run time or by ``calibration``, ``sensitivity`` says which
parts had better stay float, ``half_precision`` makes it float16. ``vocabulary`` leaves out the pieces that
some texts do not use. ``deployed`` is the folder that a graph is put into, with ``example``; ``parity``
compares its answers. ``standard_shape`` gives a pruned model a shape that other libraries know.
"""
