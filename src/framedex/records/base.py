"""The base class of records."""

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """Base class of all records: immutable, without undocumented fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")
