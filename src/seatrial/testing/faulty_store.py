"""A store in memory whose methods fail on demand, like a store with a broken server or disk."""

from __future__ import annotations

from typing import Any

from seatrial.testing.memory_store import MemoryStore

_PARTS = (
    "tasks",
    "jobs",
    "trials",
    "events",
    "output",
    "tokens",
    "provider_keys",
    "workers",
    "totals",
    "pace",
    "budgets",
)


class FaultyStore(MemoryStore):
    """``store.faults["trials.renew"] = StoreUnavailable()`` makes that method fail until the entry is removed."""

    def __init__(self) -> None:
        super().__init__()
        self.faults: dict[str, Exception] = {}
        for noun in _PARTS:
            setattr(self, noun, _FaultyPart(getattr(self, noun), noun, self.faults))


class _FaultyPart:
    """A part of the store, or its fault."""

    def __init__(self, part: object, noun: str, faults: dict[str, Exception]) -> None:
        self._part = part
        self._noun = noun
        self._faults = faults

    def __getattr__(self, method: str) -> Any:
        fault = self._faults.get(f"{self._noun}.{method}")
        if fault is None:
            return getattr(self._part, method)

        async def fail(*_: Any, **__: Any) -> Any:
            raise fault

        return fail
