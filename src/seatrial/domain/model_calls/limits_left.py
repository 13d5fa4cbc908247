"""What an agent may still use: time and budget. ``agents/limits.py`` tells it to the agent, in a variable, in a file,
and in its instruction if the job asks for that."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from seatrial.domain.frozen import Frozen
from seatrial.domain.model_calls.budget import MOST, WITHOUT_CAP, Amount

_MINUTE_SEC = 60


class LimitsLeft(Frozen):
    """At one moment. ``None``: no limit of this kind."""

    at: datetime
    seconds: float | None = None
    dollars: float | None = None
    tokens: int | None = None
    calls: int | None = None

    @classmethod
    def of(cls, at: datetime, seconds: float | None, budget: Amount = WITHOUT_CAP) -> LimitsLeft:
        return cls(
            at=at,
            seconds=None if seconds is None else max(seconds, 0.0),
            dollars=budget.dollars if budget.nanodollars < MOST else None,
            tokens=budget.tokens if budget.tokens < MOST else None,
            calls=budget.calls if budget.calls < MOST else None,
        )

    @property
    def deadline(self) -> str | None:
        """ISO 8601 in UTC, whole seconds, with a Z: ``2026-11-16T19:02:00Z``. Rounded down."""
        return None if self.seconds is None else iso(self.at + timedelta(seconds=self.seconds))

    def document(self) -> dict[str, Any]:
        """The content of the file."""
        return {
            "at": iso(self.at),
            "deadline": self.deadline,
            "seconds_left": None if self.seconds is None else int(self.seconds),
            "usd_left": None if self.dollars is None else round(self.dollars, 6),
            "tokens_left": self.tokens,
            "calls_left": self.calls,
        }

    def sentences(self, file: str) -> str:
        """For the instruction; empty if there is no limit. ``file`` is empty if the sandbox could not get one."""
        said: list[str] = []
        if self.seconds is not None:
            said.append(f"You have {_duration(self.seconds)} for this task, until {self.deadline} (UTC).")
        if spending := self._spending():
            said.append(f"You may spend at most {spending} on your model.")
        if said and file:
            said.append(f"The file {file} says what is left.")
        return " ".join(said)

    def _spending(self) -> str:
        parts = [
            *([f"${self.dollars:,.4g}"] if self.dollars is not None else []),
            *([f"{self.tokens:,} tokens"] if self.tokens is not None else []),
            *([f"{self.calls:,} calls"] if self.calls is not None else []),
        ]
        return " and ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else "".join(parts)


def iso(moment: datetime) -> str:
    return moment.astimezone(UTC).replace(microsecond=0, tzinfo=None).isoformat() + "Z"


def _duration(seconds: float) -> str:
    if seconds < 2 * _MINUTE_SEC:
        return f"{seconds:.0f} seconds"
    return f"{seconds / _MINUTE_SEC:.0f} minutes"
