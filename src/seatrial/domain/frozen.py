"""The one base of every value that crosses a module: immutable, strict about unknown fields."""

from pydantic import BaseModel, ConfigDict


class Frozen(BaseModel):
    """An immutable value."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)
