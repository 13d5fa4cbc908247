"""Trial methods, and the files of tries."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import httpx

from seatrial.client.ask import Ask, Paged, given, place, provider_keys, reads
from seatrial.client.jobs import Keys
from seatrial.client.verbs import Group, list_verb, verb
from seatrial.domain.comparisons.divergence import Divergence
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
"""The service fetches one row more than it returns, and reads at most 200 results."""


class LogPart(Frozen):
    """A range of a log."""

    text: str
    offset: int
    """Start of the range, in bytes."""
    size: int
    """Size of the whole log."""


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
    """Trials of one job or of all jobs, newest first."""
    path = "/trials" if job is None else place("jobs", job, "trials")
    params = given(state=state, outcome=outcome, cause=cause, task=task, agent=agent, model=model, limit=page_size)
    return Paged(Ask("GET", path, reads(TrialPage), params))


def list_results(job: int, *, page_size: int = _RESULTS) -> Paged[TrialResult]:
    """Trials of one job with their full results, in planned order."""
    return Paged(Ask("GET", place("jobs", job, "results"), reads(ResultPage), given(limit=page_size)))


def get_trial(trial_id: int) -> Ask[TrialDetail]:
    """One trial: its state, its last result in full, and all tries."""
    return Ask("GET", place("trials", trial_id), reads(TrialDetail))


def list_tests(trial_id: int, try_number: int | None = None) -> Ask[list[TestResult]]:
    """Results of the verifier's tests."""
    path = place("trials", trial_id, "tests")
    return Ask("GET", path, lambda answer: reads(TestList)(answer).items, given(attempt=try_number))


def list_logs(trial_id: int, try_number: int | None = None) -> Ask[list[LogItem]]:
    """The log files: the agent's, the verifier's, Harbor's."""
    path = place("trials", trial_id, "logs")
    return Ask("GET", path, lambda answer: reads(LogList)(answer).items, given(attempt=try_number))


def read_log(
    trial_id: int, name: str, *, offset: int = 0, limit: int = 1 << 20, try_number: int | None = None
) -> Ask[LogPart]:
    """A range of a log as text. A negative offset counts from the end."""
    params = given(offset=offset, limit=limit, attempt=try_number)
    return Ask("GET", place("trials", trial_id, "logs", name), _log_part, params)


def list_files(trial_id: int, try_number: int | None = None) -> Ask[list[StoredFile]]:
    """Every file of a try."""
    path = place("trials", trial_id, "files")
    return Ask("GET", path, lambda answer: reads(FileList)(answer).items, given(attempt=try_number))


def read_file(trial_id: int, path: str, try_number: int | None = None) -> Ask[bytes]:
    """Reads a whole file into memory."""
    return Ask(
        "GET", place("trials", trial_id, "files", path), lambda answer: answer.content, given(attempt=try_number)
    )


def download_file(trial_id: int, path: str, into: Path, try_number: int | None = None) -> Ask[Path]:
    """Streams a file to disk."""
    params = given(attempt=try_number)
    return Ask("GET", place("trials", trial_id, "files", path), lambda answer: into, params, into=into)


def read_trajectory(trial_id: int, try_number: int | None = None) -> Ask[bytes]:
    """The agent's steps: JSON in Harbor's format (ATIF). Raises ``NotFound`` if the agent wrote none."""
    return Ask("GET", place("trials", trial_id, "trajectory"), lambda answer: answer.content, given(attempt=try_number))


def read_recording(trial_id: int, try_number: int | None = None) -> Ask[bytes]:
    """The agent's terminal as an asciinema recording. Raises ``NotFound`` if the agent used none."""
    return Ask("GET", place("trials", trial_id, "recording"), lambda answer: answer.content, given(attempt=try_number))


def cancel_trial(trial_id: int) -> Ask[int]:
    """Stops one trial. The other trials of its job continue."""
    path = place("trials", trial_id, "cancel")
    return Ask("POST", path, lambda answer: reads(Cancelled)(answer).cancelled, repeatable=True)


def retry_trial(trial_id: int, *, keys: Keys | None = None) -> Ask[int]:
    """Runs an ended trial again, whatever its outcome. Earlier tries are kept."""
    path = place("trials", trial_id, "retry")
    return Ask("POST", path, lambda answer: reads(Queued)(answer).queued, headers=provider_keys(keys))


def compare_trials(trial_id: int, other_id: int) -> Ask[Divergence]:
    """The first step at which the agents of two trials acted differently, and the tests with different results."""
    return Ask("GET", place("trials", trial_id, "diverges-from", other_id), reads(Divergence))


class Trials[Driver](Group[Driver]):
    """``client.trials``"""

    list = list_verb(list_trials)
    results = list_verb(list_results)
    get = verb(get_trial)
    tests = verb(list_tests)
    logs = verb(list_logs)
    log = verb(read_log)
    files = verb(list_files)
    read = verb(read_file)
    download = verb(download_file)
    trajectory = verb(read_trajectory)
    recording = verb(read_recording)
    cancel = verb(cancel_trial)
    retry = verb(retry_trial)
    divergence = verb(compare_trials)


def _log_part(answer: httpx.Response) -> LogPart:
    offset, size = (int(answer.headers.get(name, 0)) for name in ("x-offset", "x-total-size"))
    return LogPart(text=answer.content.decode(errors="replace"), offset=offset, size=size)
