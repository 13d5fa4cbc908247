"""What is left of a job, for its pace and the time left."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from seatrial.adapters.store_sql.tables import IS_ENDED, IS_HELD, IS_QUEUED, IS_RUNNING, IS_UNGRADED, trials
from seatrial.domain.reports.progress import KnownDuration, RunningTrial, WorkLeft

_of_job = trials.c.job_id == sa.bindparam("job")
_kind = (trials.c.task_digest, trials.c.agent_index)
_running = sa.select(*_kind, trials.c.started_at).where(_of_job, IS_RUNNING).order_by(trials.c.id)
_waiting = (
    sa.select(*_kind, sa.func.count().label("trials")).where(_of_job, sa.or_(IS_QUEUED, IS_HELD)).group_by(*_kind)
)
_took = (
    sa.select(
        *_kind,
        sa.func.count().label("trials"),
        sa.func.avg(trials.c.seconds).label("mean"),
        sa.func.max(trials.c.seconds).label("longest"),
    )
    .where(_of_job, IS_ENDED, ~IS_UNGRADED, trials.c.seconds.is_not(None))
    .group_by(*_kind)
)
_times = sa.select(
    sa.func.count(sa.case((trials.c.ended_at > sa.bindparam("since"), 1))).label("recent"),
    sa.func.min(trials.c.started_at, type_=trials.c.started_at.type).label("first"),
).where(_of_job)


def work_left(connection: Connection, job_id: int, since: datetime) -> WorkLeft:
    given = {"job": job_id, "since": since}
    times = connection.execute(_times, given).one()
    return WorkLeft(
        running=tuple(
            RunningTrial(digest=row.task_digest, agent_index=row.agent_index, started_at=row.started_at)
            for row in connection.execute(_running, given)
        ),
        waiting={(row.task_digest, row.agent_index): row.trials for row in connection.execute(_waiting, given)},
        durations={
            (row.task_digest, row.agent_index): KnownDuration(trials=row.trials, mean=row.mean, longest=row.longest)
            for row in connection.execute(_took, given)
        },
        recently_ended=times.recent,
        first_started_at=times.first,
    )
