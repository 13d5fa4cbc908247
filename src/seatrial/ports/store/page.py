"""Where a listing goes on."""

from __future__ import annotations

from seatrial.domain.frozen import Frozen


class Page(Frozen):
    """Where a listing goes on: rows with an id below ``before`` (newest first), at most ``limit`` of them."""

    limit: int = 50
    before: int | None = None
    skip: int = 0
    """Rows left out first, for callers that count pages."""
