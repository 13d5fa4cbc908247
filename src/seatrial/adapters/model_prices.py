"""What models cost in this installation: by the operator's own table, else by LiteLLM's list."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from seatrial.adapters.model_list import ListedPrices, listed_names
from seatrial.adapters.price_file import read_price_file
from seatrial.domain.model_calls.model_call import CostBy
from seatrial.domain.model_calls.prices import NamedPrice, Price, Rates, price_of

_SCRIPTED = "scripted/"
_FREE = NamedPrice(price=Price(rates=Rates(input=0.0, output=0.0)), by=CostBy.TABLE)


class ModelPrices:
    """Implements ``ports.prices.Prices``. Both tables are read when the first price is asked for."""

    def __init__(self, own_file: Path | None = None) -> None:
        self._own_file = own_file
        self._listed = ListedPrices()

    def load(self) -> None:
        """Reads the tables now. Raises ``SetupProblem`` if the operator's cannot be used."""
        _ = self._own
        len(self._listed)

    def has_price(self, model: str) -> bool:
        return self.of(model) is not None

    def of(self, model: str) -> NamedPrice | None:
        """Scripted models cost nothing, unless the operator named a price."""
        found = price_of(model, [(CostBy.OPERATOR, self._own), (CostBy.TABLE, self._listed)])
        return _FREE if found is None and model.startswith(_SCRIPTED) else found

    @cached_property
    def _own(self) -> dict[str, Price]:
        return {} if self._own_file is None else read_price_file(self._own_file, listed_names())
