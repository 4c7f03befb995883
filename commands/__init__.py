"""The ``enc`` command: parse the options, call a recipe, show its result."""
