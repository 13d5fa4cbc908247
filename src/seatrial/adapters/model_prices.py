"""What models cost in this installation: by the operator's own table, else by LiteLLM's list."""

from __future__ import annotations

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
        self._own: dict[str, Price] | None = None
        self._listed = ListedPrices()

    def load(self) -> None:
        """Reads the tables now. Raises ``SetupProblem`` if the operator's cannot be used."""
        self._read_own()
        self._listed.load()

    def has_price(self, model: str) -> bool:
        return self.of(model) is not None

    def of(self, model: str) -> NamedPrice | None:
        """Scripted models cost nothing, unless the operator named a price."""
        found = price_of(model, [(CostBy.OPERATOR, self._read_own()), (CostBy.TABLE, self._listed)])
        return _FREE if found is None and model.startswith(_SCRIPTED) else found

    def _read_own(self) -> dict[str, Price]:
        """The operator's table, read once."""
        if self._own is None:
            self._own = {} if self._own_file is None else read_price_file(self._own_file, listed_names())
        return self._own
