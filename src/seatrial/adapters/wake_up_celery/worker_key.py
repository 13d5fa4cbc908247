"""What a worker tells about itself in Redis, for people with ``redis-cli``: ``GET seatrial:worker:<name>``.

The key expires soon after the worker is gone. Nobody reads it back, so it decides nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from seatrial.domain.trial import Trial
from seatrial.ports.store import Heartbeat

WORKER_KEY_SEC = 30
"""Seconds after which the key of a silent worker expires."""
_PREFIX = "seatrial:worker:"


def worker_key(worker: str) -> str:
    return f"{_PREFIX}{worker}"


def worker_document(about: Heartbeat, running: Iterable[Trial]) -> str:
    return json.dumps(
        {
            "worker": about.worker,
            "host": about.host,
            "pid": about.pid,
            "capacity": about.capacity,
            "started_at": about.started_at.isoformat(),
            "draining": about.draining,
            "paused": about.paused,
            "trials": [{**facts_of(trial), "since": _since(trial)} for trial in running],
        }
    )


def facts_of(trial: Trial) -> dict[str, object]:
    """Names a running trial. Nothing here is secret: a trial has no keys."""
    return {
        "trial": trial.id,
        "job": trial.job_id,
        "try": trial.try_number,
        "task": trial.task.name,
        "agent": trial.agent,
        "model": trial.model,
    }


def _since(trial: Trial) -> str | None:
    return trial.started_at.isoformat() if trial.started_at else None
