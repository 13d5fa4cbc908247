"""The store holds jobs, trials, tasks and events. Every implementation passes ``tests/contracts/store``.

Every implementation guarantees:

* A method takes effect entirely or not at all. Once it has returned, its effect survives a crash.
* ``claim`` gives a trial to exactly one of many concurrent callers.
* A write with a try number raises ``StaleTry`` after the trial was claimed again or has ended.
* Times are aware (UTC) and come from the caller, so that tests can set the clock.

All methods may raise ``StoreUnavailable``; ids that do not exist raise ``NotFound``.
"""

from __future__ import annotations

from seatrial.ports.store.access import KeyStore, ProviderKey, TokenStore
from seatrial.ports.store.events import EventStore, OutputStore
from seatrial.ports.store.jobs import JobFilter, JobNumbers, JobStore, JobTotals, Once, Page, Tally
from seatrial.ports.store.overview import Backlog, Experience, Overview, OverviewStore
from seatrial.ports.store.store import Store, StoreFacts
from seatrial.ports.store.tasks import TaskStore
from seatrial.ports.store.trials import (
    PhaseEntry,
    RenewalReport,
    TrialFilter,
    TrialHistory,
    TrialNumbers,
    TrialRow,
    TrialStore,
    TrialSummary,
)
from seatrial.ports.store.workers import Heartbeat, Trouble, WorkerRow, WorkerStore

__all__ = [
    "Backlog",
    "EventStore",
    "Experience",
    "Heartbeat",
    "JobFilter",
    "JobNumbers",
    "JobStore",
    "JobTotals",
    "KeyStore",
    "Once",
    "OutputStore",
    "Overview",
    "OverviewStore",
    "Page",
    "PhaseEntry",
    "ProviderKey",
    "RenewalReport",
    "Store",
    "StoreFacts",
    "Tally",
    "TaskStore",
    "TokenStore",
    "TrialFilter",
    "TrialHistory",
    "TrialNumbers",
    "TrialRow",
    "TrialStore",
    "TrialSummary",
    "Trouble",
    "WorkerRow",
    "WorkerStore",
]
