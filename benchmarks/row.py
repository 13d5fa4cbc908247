"""One line of the table: what was measured, against whom, what was promised, and whether it holds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

_HEADINGS = ("what", "measured", "peer", "ratio", "target", "met")


@dataclass(frozen=True, slots=True)
class Row:
    what: str
    measured: str
    target: str
    met: bool
    peer: str = ""
    ratio: float | None = None

    @property
    def cells(self) -> tuple[str, ...]:
        ratio = "" if self.ratio is None else f"{self.ratio:.2f} ×"
        return (self.what, self.measured, self.peer, ratio, self.target, "yes" if self.met else "**no**")


def faster(what: str, rate: float, peer: str, peer_rate: float, times: float) -> Row:
    """Rates per second: at least ``times`` the peer's."""
    ratio = rate / peer_rate
    return Row(what, f"{rate:.2f}/s", f">= {times:g} ×", ratio >= times, f"{peer} {peer_rate:.3f}/s", ratio)


def quicker(what: str, seconds: float, peer: str, peer_seconds: float, times: float) -> Row:
    """Times: the peer takes at least ``times`` as long."""
    ratio = peer_seconds / seconds
    return Row(what, shown(seconds), f">= {times:g} ×", ratio >= times, f"{peer} {shown(peer_seconds)}", ratio)


def within(what: str, seconds: float, peer: str, peer_seconds: float, times: float) -> Row:
    """Times: at most ``times`` as long as the peer takes."""
    ratio = seconds / peer_seconds
    return Row(what, shown(seconds), f"<= {times:g} ×", ratio <= times, f"{peer} {shown(peer_seconds)}", ratio)


def shown(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"


def markdown(rows: Iterable[Row]) -> str:
    lines = [_HEADINGS, tuple("---" for _ in _HEADINGS), *(row.cells for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
