"""What ``gc`` and the bucket's lifecycle rule remove: together everything that nobody needs, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import boto3
import pytest

from seatrial.adapters.blobs_objects import ObjectBlobs
from seatrial.domain.job import AgentSpec, JobSpec, plan
from seatrial.domain.result import Result
from seatrial.domain.task import Task, TaskFormat, TaskRef
from seatrial.domain.trial import Outcome
from seatrial.engine.blobs_owner import claim_place
from seatrial.engine.tasks.unpacked import archive_key
from seatrial.engine.trials.retention import Retention, RetentionReport
from seatrial.errors import SetupProblem
from seatrial.ports.blobs import Blobs
from seatrial.settings import Settings
from seatrial.testing.memory_blobs import MemoryBlobs
from seatrial.testing.memory_store import MemoryStore
from tests.command_line import ROOT
from tests.s3_server import new_bucket, s3_access, s3_server

NOW = datetime(2026, 6, 1, tzinfo=UTC)
TASK = Task(digest=f"sha256:{1:064x}", name="answer", format=TaskFormat.HARBOR, instruction="Do it.")
RULE = json.loads((ROOT / "deploy" / "s3-lifecycle.json").read_text())


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with s3_server() as endpoint:
        yield endpoint


@pytest.fixture(params=["memory", "s3"])
def blobs(request: pytest.FixtureRequest) -> Blobs:
    if request.param == "memory":
        return MemoryBlobs(lambda: NOW - timedelta(days=2))
    endpoint = request.getfixturevalue("endpoint")
    return ObjectBlobs.at(f"s3://{new_bucket(endpoint)}/some", s3_access(endpoint))


async def store_with(ended: tuple[timedelta, ...], waiting: int) -> MemoryStore:
    """Trials that ended this long ago, and after them some that have not."""
    store = MemoryStore()
    await store.tasks.save(TASK, NOW)
    spec = JobSpec(tasks=(TaskRef(digest=TASK.digest, name=TASK.name),), agents=(AgentSpec(name="oracle"),))
    spec = spec.model_copy(update={"attempts": len(ended) + waiting})
    await store.jobs.create(spec, list(plan(spec)), NOW - timedelta(days=365))
    for ago in ended:
        [trial] = await store.trials.claim("worker", timedelta(hours=1), 1, NOW - timedelta(days=364))
        await store.trials.finish(trial.id, trial.try_number, Result(outcome=Outcome.FAILED), NOW - ago)
    return store


async def collect(
    store: MemoryStore, blobs: Blobs, tmp_path: Path, now: datetime = NOW, **more: bool
) -> RetentionReport:
    retention = Retention(store, blobs, lambda: now, tmp_path / "work")
    return await retention.apply(timedelta(days=30), more.get("dry_run", False))


async def kept(blobs: Blobs) -> set[str]:
    return {blob.key async for blob in blobs.list("")}


async def test_files_go_when_their_trial_is_old_or_gone(blobs: Blobs, tmp_path: Path) -> None:
    store = await store_with((timedelta(days=40), timedelta(days=3)), waiting=1)
    for key in ("trials/1/1/log", "trials/1/2/log", "trials/1/2.files.json", "trials/2/1/log", "trials/3/1/log"):
        await blobs.put_bytes(key, b"123")
    for key in ("trials/77/1/log", "installation", "states/77/x", "trials/odd"):  # 77: its job was deleted
        await blobs.put_bytes(key, b"12345")
    rehearsed = await collect(store, blobs, tmp_path, dry_run=True)
    assert len(await kept(blobs)) == 9
    assert await collect(store, blobs, tmp_path) == rehearsed
    assert (rehearsed.trials, rehearsed.files, rehearsed.orphans, rehearsed.bytes) == (1, 3, 1, 14)
    others = {"installation", "states/77/x", "trials/odd"}
    assert await kept(blobs) == {"trials/2/1/log", "trials/3/1/log", *others}


async def test_archives_of_no_task_go_after_a_day(blobs: Blobs, tmp_path: Path) -> None:
    """A task is saved after its archive."""
    store = await store_with((), waiting=1)
    lost = f"sha256:{2:064x}"
    for key in (archive_key(TASK.digest), archive_key(lost), "tasks/note.txt"):
        await blobs.put_bytes(key, b"123")
    written = (await blobs.info(archive_key(lost))).modified_at
    assert (await collect(store, blobs, tmp_path, written + timedelta(hours=23))).orphans == 0
    assert (await collect(store, blobs, tmp_path, written + timedelta(hours=25))).orphans == 1
    assert await kept(blobs) == {archive_key(TASK.digest), "tasks/note.txt"}


async def test_two_installations_do_not_share_a_place() -> None:
    blobs = MemoryBlobs()
    await claim_place(blobs, "one", "s3://files")
    await claim_place(blobs, "one", "s3://files")
    with pytest.raises(SetupProblem, match="another installation"):
        await claim_place(blobs, "two", "s3://files")


def test_the_lifecycle_rule_leaves_every_file_to_gc() -> None:
    """A rule goes by the age of an object; whether a file is needed stands in the store."""
    for rule in RULE["Rules"]:
        assert rule["Status"] == "Enabled" and rule["Filter"] == {"Prefix": ""}
        assert rule.get("Expiration", {}).keys() <= {"ExpiredObjectDeleteMarker"}
        assert not rule.keys() & {"Transitions", "NoncurrentVersionTransitions"}


def test_the_lifecycle_rule_removes_what_gc_cannot_see() -> None:
    """Unfinished uploads are no objects. None takes longer than a trial's files are waited for."""
    [days] = [
        rule["AbortIncompleteMultipartUpload"]["DaysAfterInitiation"]
        for rule in RULE["Rules"]
        if "AbortIncompleteMultipartUpload" in rule
    ]
    longest = Settings.model_fields["blobs_patience_sec"].default + Settings.model_fields["trial_limit_sec"].default
    assert timedelta(days=days) > timedelta(seconds=longest)
    [kept_days] = [
        rule["NoncurrentVersionExpiration"]["NoncurrentDays"]
        for rule in RULE["Rules"]
        if "NoncurrentVersionExpiration" in rule
    ]
    assert kept_days == 30, "as long as `gc` keeps files if it is not told otherwise"


async def test_the_server_takes_the_lifecycle_rule(endpoint: str, tmp_path: Path) -> None:
    bucket = new_bucket(endpoint)
    client = boto3.client(
        "s3", endpoint_url=endpoint, region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="x"
    )
    client.put_bucket_lifecycle_configuration(Bucket=bucket, LifecycleConfiguration=RULE)
    taken = client.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"]
    assert [rule["ID"] for rule in taken] == [rule["ID"] for rule in RULE["Rules"]]
    (tmp_path / "large").write_bytes(b"x" * (6 << 20))
    blobs = ObjectBlobs.at(f"s3://{bucket}/some", s3_access(endpoint))
    await blobs.put_file("large", tmp_path / "large")
    assert client.list_multipart_uploads(Bucket=bucket).get("Uploads", []) == [], "an upload that ended leaves none"
