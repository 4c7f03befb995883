"""Whole experiments: a typed config in, a ``Result`` out. Nothing here prints.

Each command has its recipe, and each recipe its config: ``finetune`` and ``finetune_config``, ``evaluate``
and ``evaluate_config``, and so on: ``predict`` (with ``ranking``), ``freeze_sweep`` (how many layers can be
frozen, by means of ``freeze_points`` and ``freeze_verdict``), ``bench`` (how fast), ``profile`` (where the
time goes), ``runs`` (all that was done so far), ``probe`` with its ``probe_verdict`` (what each layer knows),
``attention`` (of one text, head by head, or ``attention_residual``), ``embed`` and ``embed_comparison``
(texts as vectors; of which layer). ``fields`` holds options that several share, ``training_options`` those of
every command that trains: what it starts from is in ``training_inputs``, what comes of it in ``trained``,
``resuming`` lets it survive, ``frozen_storage`` finds room for what frozen layers computed.

``prune_heads``, ``prune_neurons`` and ``drop_layers`` are one recipe, ``pruning``, with two ``pruning_ways``:
units out of layers, or layers. ``pruning_search`` finds how much may go; what it starts from, how it trains
and how it is measured are in ``pruning_inputs``, ``pruning_training`` and ``pruning_measuring``.

``distill`` teaches a student: ``distill_inputs`` reads, ``distill_student`` settles what it is to be,
``distill_training`` trains it, with its teacher or without; ``side_by_side`` times it beside its parent.
``export`` writes a model for deployment: it starts from ``export_inputs``, ``export_onnx`` writes a graph,
``export_proof`` runs it in a fresh process, ``model_card`` says what it is; ``side_by_side`` measures a model
beside the one it was made of.

``pretrain`` makes an encoder, of an ``encoder_shape``, or trains one further, from ``pretrain_inputs``;
``depth`` looks at encoders layer by layer, on rows of ``depth_inputs``.

``run`` does a whole ``chain``, which ``chain_reading`` makes of a recipe (``recipe_files``): what a step may
be stands in the table ``chain_steps``, what becomes of a model in ``chain_shapes``; ``chain_checking``
refuses what cannot work, ``chain_record`` knows what is done. ``plan`` tells it all beforehand, with
``plan_time`` and ``row_times``.

``result`` is the run.json of a model that was made or scored, ``measurements`` that of one that was measured;
``ledger`` reads both. ``observer`` is how a recipe tells what it is doing. ``scoring`` turns rows into scores
and ``against`` compares two models on them; ``models`` and ``inputs`` are what a measurement starts from,
``encoders`` what needs no classifier.

The configs import nothing heavy: a command line is checked before torch is loaded.
"""
