"""Verbs about trials, and about what their tries left."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import httpx

from seatrial.client.ask import Ask, Paged, given, place, provider_keys, reads
from seatrial.client.jobs import Keys
from seatrial.client.verbs import Group, ListVerb, Verb
from seatrial.domain.divergence import Divergence
from seatrial.domain.frozen import Frozen
from seatrial.domain.result import StoredFile, TestResult
from seatrial.domain.trial import Cause, Outcome, TrialState
from seatrial.shapes.jobs import Cancelled, Queued
from seatrial.shapes.trials import (
    FileList,
    LogItem,
    LogList,
    ResultPage,
    TestList,
    TrialDetail,
    TrialItem,
    TrialPage,
    TrialResult,
)

_RESULTS = 199
"""A service looks for one more than it shows, and reads results by 200."""


class LogPart(Frozen):
    """A range of a log."""

    text: str
    offset: int
    """Where it begins, in bytes."""
    size: int
    """Of the whole log."""


def list_trials(
    *,
    job: int | None = None,
    state: Sequence[TrialState] = (),
    outcome: Sequence[Outcome] = (),
    cause: Sequence[Cause] = (),
    task: str | None = None,
    agent: str | None = None,
    model: str | None = None,
    page_size: int = 200,
) -> Paged[TrialItem]:
    """Trials of one job or of all, newest first."""
    path = "/trials" if job is None else place("jobs", job, "trials")
    params = given(state=state, outcome=outcome, cause=cause, task=task, agent=agent, model=model, limit=page_size)
    return Paged(Ask("GET", path, reads(TrialPage), params))


def list_results(job: int, *, page_size: int = _RESULTS) -> Paged[TrialResult]:
    """Trials of one job with their results in full, in the order of the job's plan."""
    return Paged(Ask("GET", place("jobs", job, "results"), reads(ResultPage), given(limit=page_size)))


def get_trial(trial_id: int) -> Ask[TrialDetail]:
    """One trial: how it stands, its last result in full, and every try."""
    return Ask("GET", place("trials", trial_id), reads(TrialDetail))


def list_tests(trial_id: int, attempt: int | None = None) -> Ask[list[TestResult]]:
    """Test by test, as the verifier told it."""
    path = place("trials", trial_id, "tests")
    return Ask("GET", path, lambda answer: reads(TestList)(answer).items, given(attempt=attempt))


def list_logs(trial_id: int, attempt: int | None = None) -> Ask[list[LogItem]]:
    """The files that are logs: the agent's, the verifier's, Harbor's."""
    path = place("trials", trial_id, "logs")
    return Ask("GET", path, lambda answer: reads(LogList)(answer).items, given(attempt=attempt))


def read_log(
    trial_id: int, name: str, *, offset: int = 0, limit: int = 1 << 20, attempt: int | None = None
) -> Ask[LogPart]:
    """A range of a log as text. An offset below 0 counts from the end."""
    params = given(offset=offset, limit=limit, attempt=attempt)
    return Ask("GET", place("trials", trial_id, "logs", name), _log_part, params)


def list_files(trial_id: int, attempt: int | None = None) -> Ask[list[StoredFile]]:
    """Every file that a try left."""
    path = place("trials", trial_id, "files")
    return Ask("GET", path, lambda answer: reads(FileList)(answer).items, given(attempt=attempt))


def read_file(trial_id: int, path: str, attempt: int | None = None) -> Ask[bytes]:
    """One file as a whole, in memory."""
    return Ask("GET", place("trials", trial_id, "files", path), lambda answer: answer.content, given(attempt=attempt))


def download_file(trial_id: int, path: str, into: Path, attempt: int | None = None) -> Ask[Path]:
    """One file into a file here, piece by piece."""
    params = given(attempt=attempt)
    return Ask("GET", place("trials", trial_id, "files", path), lambda answer: into, params, into=into)


def read_trajectory(trial_id: int, attempt: int | None = None) -> Ask[bytes]:
    """What the agent did, step by step: JSON in Harbor's format (ATIF). ``NotFound`` where the agent wrote none."""
    return Ask("GET", place("trials", trial_id, "trajectory"), lambda answer: answer.content, given(attempt=attempt))


def read_recording(trial_id: int, attempt: int | None = None) -> Ask[bytes]:
    """What the agent's terminal showed, as an asciinema recording. ``NotFound`` where the agent used none."""
    return Ask("GET", place("trials", trial_id, "recording"), lambda answer: answer.content, given(attempt=attempt))


def cancel_trial(trial_id: int) -> Ask[int]:
    """Stops one trial; the others of its job go on."""
    path = place("trials", trial_id, "cancel")
    return Ask("POST", path, lambda answer: reads(Cancelled)(answer).cancelled, repeatable=True)


def retry_trial(trial_id: int, *, keys: Keys | None = None) -> Ask[int]:
    """Runs an ended trial again, whatever its outcome; earlier tries are kept."""
    path = place("trials", trial_id, "retry")
    return Ask("POST", path, lambda answer: reads(Queued)(answer).queued, headers=provider_keys(keys))


def compare_trials(trial_id: int, other_id: int) -> Ask[Divergence]:
    """The first step at which two trials' agents acted differently, and the tests that turned out differently."""
    return Ask("GET", place("trials", trial_id, "diverges-from", other_id), reads(Divergence))


class Trials[Driver](Group[Driver]):
    """``client.trials``"""

    list = ListVerb(list_trials)
    results = ListVerb(list_results)
    get = Verb(get_trial)
    tests = Verb(list_tests)
    logs = Verb(list_logs)
    log = Verb(read_log)
    files = Verb(list_files)
    read = Verb(read_file)
    download = Verb(download_file)
    trajectory = Verb(read_trajectory)
    recording = Verb(read_recording)
    cancel = Verb(cancel_trial)
    retry = Verb(retry_trial)
    divergence = Verb(compare_trials)


def _log_part(answer: httpx.Response) -> LogPart:
    offset, size = (int(answer.headers.get(name, 0)) for name in ("x-offset", "x-total-size"))
    return LogPart(text=answer.content.decode(errors="replace"), offset=offset, size=size)
