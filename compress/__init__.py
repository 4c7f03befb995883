"""Ways to make an encoder smaller or faster, and how that is measured.

Measuring: ``latency`` (how long, in a ``worker`` process of its own that ``process`` starts; the inputs come
from ``workload``, the ways to run from ``runtimes``, the statistics from ``timing``), ``size`` (how big),
``memory``, and ``machine`` (where all that was found).
"""
