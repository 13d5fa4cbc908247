"""How many trials a worker holds: memory and processors of its machine, or a fixed count.

Memory is packed without overcommit by default, because a sandbox that needs it and does not get it is killed.
Processors are packed eight times, because trials mostly wait for a model. A worker that sees pressure claims nothing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from datetime import timedelta
from typing import Self

from pydantic import Field

from seatrial.domain.fleet.needs import Abilities, Needs
from seatrial.domain.frozen import Frozen

MEMORY_SHARE = 0.9
"""Of the machine's memory, for sandboxes. The rest is for workers, image builds and the system."""
PATIENCE = timedelta(minutes=3)
"""A trial that waited for room for longer keeps others from overtaking it."""
HOLD = timedelta(seconds=30)
"""A worker that keeps room free for a trial renews this with each claim; afterwards another worker may do it."""


class Size(Frozen):
    """Memory and processors: of a worker in total, of a trial, or still free."""

    memory_mb: int = Field(ge=0)
    cpus: float = Field(ge=0)

    def holds(self, other: Size) -> bool:
        return other.memory_mb <= self.memory_mb and other.cpus <= self.cpus

    def less(self, other: Size) -> Size:
        return Size(memory_mb=max(self.memory_mb - other.memory_mb, 0), cpus=max(self.cpus - other.cpus, 0.0))

    def times(self, other: Size) -> int:
        """How many of the other fit, side by side."""
        by_memory = self.memory_mb // other.memory_mb if other.memory_mb else math.inf
        by_cpus = math.floor(self.cpus / other.cpus) if other.cpus else math.inf
        return int(min(by_memory, by_cpus, 1_000_000))

    @classmethod
    def parse(cls, text: str) -> Self:
        """``16cpu,64gb``, in any order."""
        words = dict(re.findall(r"([a-z]+)=([\d.]+)", re.sub(r"([\d.]+)\s*([a-z]+)", r"\2=\1", text.lower())))
        try:
            cpus, memory_gb = float(words.get("cpus") or words["cpu"]), float(words["gb"])
        except (KeyError, ValueError) as wrong:
            raise ValueError(f"{text!r} is not a size such as 16cpu,64gb") from wrong
        return cls(memory_mb=int(memory_gb * 1024), cpus=cpus)

    def __str__(self) -> str:
        return f"{self.cpus:g} CPUs and {self.memory_mb / 1024:.3g} GB"


NOTHING = Size(memory_mb=0, cpus=0)


def total(sizes: Iterable[Size]) -> Size:
    found = list(sizes)
    return Size(memory_mb=sum(size.memory_mb for size in found), cpus=sum(size.cpus for size in found))


class Overcommit(Frozen):
    """How many times trials may declare together what a machine has."""

    memory: float = Field(default=1.0, gt=0)
    cpus: float = Field(default=8.0, gt=0)

    def usable(self, machine: Size) -> Size:
        """What trials on this machine may declare together."""
        memory_mb = int(machine.memory_mb * MEMORY_SHARE * self.memory)
        return Size(memory_mb=memory_mb, cpus=machine.cpus * self.cpus)


class Packing(Frozen):
    """What fits into one worker: what its trials may declare together, and what a trial that declares nothing takes."""

    size: Size
    usual: Size
    """A trial without declared resources: the defaults of the sandbox."""

    def demand(self, needs: Needs) -> Size:
        """What a trial takes. A trial that declares nothing fits on every machine."""
        memory = min(self.usual.memory_mb, self.size.memory_mb) if needs.memory_mb is None else needs.memory_mb
        cpus = min(self.usual.cpus, self.size.cpus) if needs.cpus is None else needs.cpus
        return Size(memory_mb=memory, cpus=cpus)

    @property
    def usual_count(self) -> int:
        """How many trials without declared resources fit at once."""
        return max(1, self.size.times(self.demand(Needs())))


class Offer(Frozen):
    """What a worker offers when it claims. The default takes every trial."""

    abilities: Abilities = Abilities()
    packing: Packing | None = None
    """``None``: the worker only counts its trials."""
    free: Size = NOTHING
    held: tuple[Size, ...] = ()
    """The trials that it runs. One of them that is as large as a waiting trial leaves enough room when it ends."""

    def may_ever_run(self, needs: Needs) -> bool:
        if self.abilities.missing(needs):
            return False
        return self.packing is None or self.packing.size.holds(self.packing.demand(needs))

    def fits(self, needs: Needs) -> bool:
        """Whether there is room now."""
        return self.packing is None or self.free.holds(self.packing.demand(needs))

    def demand(self, needs: Needs) -> Size:
        return NOTHING if self.packing is None else self.packing.demand(needs)

    def after(self, needs: Needs) -> Offer:
        """The offer after a trial was taken."""
        if self.packing is None:
            return self
        return self.model_copy(update={"free": self.free.less(self.packing.demand(needs))})

    def must_keep_room(self, needs: Needs) -> bool:
        """Whether a waiting trial needs more than the end of one trial here: then nothing may overtake it."""
        wanted = self.demand(needs)
        return not any(size.holds(wanted) for size in self.held)


EVERYTHING = Offer()
