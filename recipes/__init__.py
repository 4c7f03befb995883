"""Whole experiments: a typed config in, a ``Result`` out. Nothing here prints.

Each command has its recipe, and each recipe its config: ``finetune`` and ``finetune_config``, ``evaluate``
and ``evaluate_config``, ``predict`` and ``predict_config``; ``fields`` holds the options they share.
``result`` is what run.json holds, ``observer`` how a recipe tells what it is doing, ``scoring`` what recipes
have in common.

The configs import nothing heavy: a command line is checked before torch is loaded.
"""
