"""What every part of a run.json is: a record that is read as well where a newer enc has added to it."""

from pydantic import BaseModel, ConfigDict


class Part(BaseModel):
    """A part of a result. Unknown keys are passed over, so that an older enc reads a newer run.json."""

    model_config = ConfigDict(frozen=True, extra="ignore")
