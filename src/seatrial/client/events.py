"""Methods that follow events."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.client.ask import Following, Parameters, given, place
from seatrial.client.verbs import Group, stream_verb


def job_events(job_id: int, *, kinds: Sequence[str] = (), after: str = "") -> Following:
    """All events of a job until it has ended. ``kinds=["trial.output"]`` requests live output of its trials.

    ``after`` is the id of the last message received. A dropped connection is resumed automatically.
    """
    return Following(place("jobs", job_id, "events"), _kinds(kinds), after)


def trial_events(trial_id: int, *, kinds: Sequence[str] = (), after: str = "") -> Following:
    """All events of a trial with its live output, until it has ended."""
    return Following(place("trials", trial_id, "events"), _kinds(kinds), after)


def all_events(*, kinds: Sequence[str] = (), after: str = "") -> Following:
    """All events from now on; never ends."""
    return Following("/events", _kinds(kinds), after)


class Events[Driver](Group[Driver]):
    """``client.events``"""

    job = stream_verb(job_events)
    trial = stream_verb(trial_events)
    all = stream_verb(all_events)


def _kinds(kinds: Sequence[str]) -> Parameters:
    return given(kinds=",".join(kinds) or None)
