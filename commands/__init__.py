"""The ``enc`` command: parse the options, call a recipe, show its result.

``app`` finds the command and turns errors into messages and exit codes; ``pretrain``, ``finetune``,
``freeze_sweep``, ``evaluate``, ``predict``, ``embed``, ``attention``, ``probe``, ``depth``, ``prune_heads``,
``prune_neurons``, ``drop_layers``, ``distill``, ``export``, ``bench``, ``profile``, ``runs``, ``run`` and
``recipes`` are the commands; ``options`` makes their options from the recipes' configs, ``option_docs`` lists
them in docs/. ``progress`` shows a run on stderr while it goes on. On stdout ``report`` shows what was made
or scored, ``pruning_report`` with its ``importance_map``, ``distill_report``, ``export_report`` (by means of
``before_and_after``), ``freeze_sweep_report``, ``bench_report``, ``profile_report``, ``embed_report``,
``probe_report``, ``pretrain_report``, ``depth_report``, ``attention_report`` with its ``attention_page`` and
``attention_style``, ``residual_report``, ``run_report``, ``plan_report`` and ``runs_report`` the rest, by
means of ``tables``.
"""
