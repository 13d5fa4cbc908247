"""What models cost, as far as a job's submission must know."""

from __future__ import annotations

from typing import Protocol


class Prices(Protocol):
    def has_price(self, model: str) -> bool:
        """Whether a call of this model, by its name at LiteLLM, can be counted in dollars."""
        ...
