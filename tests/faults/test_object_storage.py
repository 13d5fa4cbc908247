"""A service that keeps its files in S3: what it serves, what an outage costs, and where its credentials are not."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.command_line import CommandLine
from tests.faults.test_18_canary_key import Eavesdropper, Session, pack, session
from tests.running_service import service_up
from tests.s3_front import Front, s3_front
from tests.s3_server import new_bucket, s3_server, s3_settings
from tests.task_files import write_task

pytestmark = pytest.mark.sandbox


@pytest.fixture
def front() -> Iterator[Front]:
    with s3_server() as behind, s3_front(behind) as front:
        yield front


async def run_job(asked: Session) -> tuple[str, int]:
    """The outcome of a trial of the only task, and the trial."""
    job = (await asked.ask("POST", "/api/v1/jobs", 201, json={"tasks": ["answer"]})).json()["id"]
    await asked.until_ended(job)
    [trial] = (await asked.ask("GET", f"/api/v1/jobs/{job}/trials", 200)).json()["items"]
    return trial["outcome"], trial["id"]


async def test_an_outage_costs_files_only_and_shows_no_credentials(
    cli: CommandLine, tmp_path: Path, front: Front
) -> None:
    """The server repeats the signed request, with the session token in it, as S3 does when a signature is wrong."""
    canaries = {name: f"canary-{name}-{secrets.token_hex(12)}" for name in ("secret", "token")}
    bucket = new_bucket(front.behind)
    environment = s3_settings(front.endpoint, bucket) | {
        "AWS_SECRET_ACCESS_KEY": canaries["secret"],
        "AWS_SESSION_TOKEN": canaries["token"],
        "SEATRIAL_LOG_LEVEL": "DEBUG",
        "SEATRIAL_BLOBS_PATIENCE_SEC": "0.5",
    }
    needles = [canary.encode() for canary in canaries.values()]
    with service_up(cli, "--workers", "1", "-n", "2", **environment) as service, Eavesdropper(needles) as listener:
        async with session(service.url) as asked:
            files = [("files", ("answer.zip", pack(write_task(tmp_path, "answer")), "application/zip"))]
            await asked.ask("POST", "/api/v1/tasks", 201, files=files)
            outcome, kept = await run_job(asked)
            assert outcome == "passed"
            path = f"/api/v1/trials/{kept}/files/trial.log"
            whole = (await asked.ask("GET", path, 200)).content
            part = await asked.ask("GET", path, 206, headers={"Range": "bytes=3-9"})
            assert part.content == whole[3:10] and part.headers["content-range"] == f"bytes 3-9/{len(whole)}"
            assert not (cli.home / "blobs").exists() or not any((cli.home / "blobs").rglob("*"))

            front.always = "403"
            outcome, lost = await run_job(asked)
            assert outcome == "passed", "a grade is recorded, wherever its files are"
            listed = (await asked.ask("GET", f"/api/v1/trials/{lost}/files", 200)).json()
            assert listed["items"] == [] and listed["left_out"]["count"] > 0
            assert (await asked.ask("GET", path)).status_code == 503
            assert (await asked.ask("GET", "/ready")).status_code == 503
            for trial in (kept, lost):
                for part in ("", "/logs", "/logs/trial.log", "/trajectory", "/files/trial.log", "/events"):
                    await asked.ask("GET", f"/api/v1/trials/{trial}{part}")
            for place in ("/api/v1/workers", "/metrics", "/api/v1/stats"):
                await asked.ask("GET", place)

            front.always = ""
            assert (await asked.ask("GET", path, 200)).content == whole
            outcome, again = await run_job(asked)
            assert outcome == "passed"
            await asked.ask("GET", f"/api/v1/trials/{again}/files/trial.log", 200)
        told = cli("gc", "--keep-days", "0", **environment).out
        assert "of 2 trials" in told, told
        logs = b"".join(path.read_bytes() for path in service.logs)
    home = b"".join(path.read_bytes() for path in cli.home.rglob("*") if path.is_file())
    assert listener.rounds > 3 and not listener.heard
    assert any(request.headers.get("x-amz-security-token") == canaries["token"] for request in front.asked)
    assert b"SignatureDoesNotMatch" in logs, "the log says what was wrong"
    for name, canary in canaries.items():
        assert canary.encode() not in logs, f"{name}: in a log"
        assert canary.encode() not in home, f"{name}: in the home"
        assert not [answer for answer in asked.answers if canary.encode() in answer], f"{name}: in an answer"
