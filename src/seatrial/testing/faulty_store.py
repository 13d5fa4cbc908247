"""A store in memory whose methods fail on demand, like a store with a broken server or disk."""

from __future__ import annotations

from typing import Any

from seatrial.testing.memory_store import MemoryStore


class FaultyStore(MemoryStore):
    """``store.faults["renew"] = StoreUnavailable()`` makes that method fail until the entry is removed."""

    def __init__(self) -> None:
        super().__init__()
        self.faults: dict[str, Exception] = {}

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        fault = None if name.startswith("_") or name == "faults" else self.faults.get(name)
        if fault is None:
            return found

        async def fail(*_: Any, **__: Any) -> Any:
            raise fault

        return fail
