"""The ``enc`` command: parse the options, call a recipe, show its result.

``app`` finds the command and turns errors into messages and exit codes; ``finetune``, ``evaluate`` and
``predict`` are the commands; ``options`` makes their options from the recipes' configs; ``progress`` shows a
run on stderr while it goes on, ``report`` its result on stdout.
"""
