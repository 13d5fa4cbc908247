"""What a result says about files: their names as they are kept, never where this machine had them."""

from __future__ import annotations

from pathlib import Path

from seatrial.adapters.runner_harbor.outcome import without_host_paths
from seatrial.domain.result import Failure, Result
from seatrial.domain.trial import Cause, Outcome

WORK = Path("/srv/home/work/12-34-host/7-1")


def told(text: str) -> Result:
    failure = Failure(type="Broken", message=text, traceback=f"Traceback: {text}")
    result = Result(outcome=Outcome.ERROR, cause=Cause.VERIFIER, message=f"Broken: {text}", failure=failure)
    return without_host_paths(result, WORK)


def test_files_of_the_attempt_have_their_kept_names() -> None:
    result = told(f"No reward file found at {WORK}/verifier/reward.txt or {WORK}/verifier/reward.json")
    expected = "No reward file found at verifier/reward.txt or verifier/reward.json"
    assert result.failure is not None
    assert (result.message, result.failure.message) == (f"Broken: {expected}", expected)
    assert result.failure.traceback == f"Traceback: {expected}"
    assert told(f"{WORK} is gone").message == "Broken: . is gone"


def test_a_link_to_the_work_directory_is_seen_through(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    result = Result(outcome=Outcome.ERROR, cause=Cause.AGENT, message=f"{tmp_path}/real/a {tmp_path}/link/b")
    assert without_host_paths(result, tmp_path / "link").message == "a b"


def test_other_paths_stay() -> None:
    assert told("/app/answer.txt is missing").message == "Broken: /app/answer.txt is missing"
    assert told(f"{WORK}2/log is another's").message == f"Broken: {WORK}2/log is another's"
    assert told("").failure == Failure(type="Broken", message="", traceback="Traceback: ")
