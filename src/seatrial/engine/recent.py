"""What was worked out last, and no more than fits: the one used longest ago is forgotten first.

For values that cannot change under their key. One per process and purpose, used from its event loop alone.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable


class RecentlyUsed[Found]:
    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept: OrderedDict[Hashable, Found] = OrderedDict()

    def get(self, key: Hashable) -> Found | None:
        if key in self._kept:
            self._kept.move_to_end(key)
        return self._kept.get(key)

    def put(self, key: Hashable, found: Found) -> None:
        self._kept[key] = found
        if len(self._kept) > self._limit:
            self._kept.popitem(last=False)
