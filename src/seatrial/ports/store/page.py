"""Where a listing goes on."""

from __future__ import annotations

from pydantic import Field

from seatrial.domain.frozen import Frozen
from seatrial.domain.numbers import LARGEST_COUNT, LARGEST_ID


class Page(Frozen):
    """Where a listing goes on: rows with an id below ``before`` (newest first), at most ``limit`` of them."""

    limit: int = Field(default=50, ge=0, le=LARGEST_COUNT)
    before: int | None = Field(default=None, ge=0, le=LARGEST_ID)
    skip: int = Field(default=0, ge=0, le=LARGEST_COUNT)
    """Rows left out first, for callers that count pages."""
