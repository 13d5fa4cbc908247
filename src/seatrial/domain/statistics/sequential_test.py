"""A paired test that may be looked at several times, and a test that a difference is small. Used by ``settling``.

Pure numbers. ``SequentialSignFlip`` is the sign-flip test of ``significance`` for planned looks: it replays all looks
with the sign of each task flipped at random, and rejects only where few of the replays would have been rejected *at
this or any earlier look*. The number of looks therefore does not raise the error rate.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

REPLAYS = 3_999
"""With the observed run these are 4,000 equally likely runs if the two sides are alike."""
_STAKES = (0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 0.95)
"""Shares of the capital that are bet on each task; the capital is split evenly over these."""


class SequentialSignFlip:
    """If A and B are exchangeable on each task, ``look`` ever returns true with probability at most the last ``share``.

    That is exact: the observed run is one of ``REPLAYS + 1`` exchangeable ones, and of those at most that share is ever
    rejected. Whatever decides about further trials must treat A and B alike.
    """

    def __init__(self, flips: Sequence[int]) -> None:
        """``flips``: for each task a random number of ``REPLAYS`` bits; bit m flips its sign in replay m."""
        self._flips = flips
        self._open = [True] * (REPLAYS + 1)
        """Which runs no look has rejected yet. The last one is the observed run."""
        self._rejected = 0

    def look(self, differences: Sequence[int], share: float) -> bool:
        """Whether this look rejects the observed run. ``differences``: one per task, on any common scale. ``share``:
        which part of all runs may be rejected up to this look."""
        allowed = math.floor(share * (REPLAYS + 1) + 1e-9) - self._rejected
        if allowed <= 0 or not any(differences):
            return False
        sums = self._sums(differences)
        ranked = sorted((size for size, is_open in zip(sums, self._open, strict=True) if is_open), reverse=True)
        limit = ranked[allowed] if allowed < len(ranked) else -1
        for run, size in enumerate(sums):
            if self._open[run] and size > limit:  # ties with the first that may not be rejected are not rejected either
                self._open[run] = False
                self._rejected += 1
        return not self._open[-1]

    def _sums(self, differences: Sequence[int]) -> list[int]:
        """The size of the sum of the differences in every replay, then in the observed run."""
        total = sum(differences)
        gains, losses = (_flipped_sums(self._flips, [max(0, sign * each) for each in differences]) for sign in (1, -1))
        return [abs(total - 2 * (gain - loss)) for gain, loss in zip(gains, losses, strict=True)] + [abs(total)]


def _flipped_sums(flips: Sequence[int], sizes: Sequence[int]) -> list[int]:
    """For each replay the sum of the sizes whose sign it flips.

    Adds up all replays at once: ``planes[p]`` holds bit p of every replay's sum, one replay per bit. That takes some
    operations on long integers per task instead of thousands of additions.
    """
    planes: list[int] = []
    for flip, size in zip(flips, sizes, strict=True):
        for place in range(size.bit_length()):
            if size >> place & 1:
                _add(planes, flip, place)
    digits = [f"{plane:0{REPLAYS}b}" for plane in reversed(planes)]
    return [int("".join(bits), 2) for bits in zip(*digits, strict=True)] if digits else [0] * REPLAYS


def _add(planes: list[int], flip: int, place: int) -> None:
    carry = flip
    while carry:
        while len(planes) <= place:
            planes.append(0)
        planes[place], carry = planes[place] ^ carry, planes[place] & carry
        place += 1


def evidence_of_smallness(differences: Sequence[float], margin: float) -> float:
    """An e-value against a mean difference of ``margin`` or more in either direction: for such means its expectation is
    at most 1, whatever the distribution. ``differences`` lie between -1 and 1, one independent value per task.

    It is the capital of a fair bet, task by task, that the difference is smaller; of two bets the poorer one counts.
    """
    return min(_capital(differences, margin), _capital([-each for each in differences], margin))


def _capital(differences: Sequence[float], margin: float) -> float:
    """Of a bet against a mean of at least ``margin``."""
    if margin >= 1:
        return 0.0
    times = Counter(differences)
    logs = [
        math.fsum(count * math.log(1 - stake + stake * (1 - value) / (1 - margin)) for value, count in times.items())
        for stake in _STAKES
    ]
    return math.fsum(math.exp(min(log, 700.0)) for log in logs) / len(logs)
