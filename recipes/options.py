"""What all commands' options have in common: they are checked together, and all problems told at once."""

from pydantic import model_validator

from encoder.config import Strict


class Options(Strict):
    """A config that a command makes its command line of. One that extends it says in ``problems`` what does
    not fit together."""

    @model_validator(mode="after")
    def _options_fit_together(self) -> "Options":
        if problems := self.problems():
            raise ValueError("\n".join(problems))
        return self

    def problems(self) -> list[str]:
        """What is wrong with the options together, a sentence each, field names in backticks."""
        return []
