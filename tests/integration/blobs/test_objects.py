"""Object storage that is slow, broken, full or curious; large files; what each upload asks for."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from seatrial.adapters.blobs_objects import Connection, ObjectBlobs, S3Access
from seatrial.errors import InvalidInput, NotFound, SeatrialError, StorageFull, StoreUnavailable
from tests.command_line import ROOT
from tests.s3_front import Front, s3_front
from tests.s3_server import new_bucket, s3_access, s3_process, s3_server

TOKEN = "canary-session-token-0123456789"
LARGE = 300 << 20


@pytest.fixture(scope="module")
def behind() -> Iterator[str]:
    with s3_server() as endpoint:
        yield endpoint


@pytest.fixture
def front(behind: str) -> Iterator[Front]:
    with s3_front(behind) as front:
        yield front


def blobs_behind(front: Front, seconds: float = 60.0, **access: Any) -> ObjectBlobs:
    bucket = new_bucket(front.behind)
    return ObjectBlobs.at(f"s3://{bucket}/some", s3_access(front.endpoint, **access), Connection(timeout_sec=seconds))


@pytest.mark.parametrize("fault", ["500", "503", "cut"])
async def test_a_passing_fault_is_not_noticed(front: Front, tmp_path: Path, fault: str) -> None:
    blobs = blobs_behind(front)
    content = b"0123456789" * 100_000
    (tmp_path / "file").write_bytes(content)
    if fault != "cut":  # a cut answer to an upload is not an answer
        front.faults[:] = [fault]
        assert await blobs.put_file("k", tmp_path / "file") == len(content)
    else:
        await blobs.put_file("k", tmp_path / "file")
    front.faults[:] = [fault]
    assert await blobs.read("k") == content
    assert front.faults == []


@pytest.mark.parametrize("fault", ["500", "503", "hang"])
async def test_a_lasting_fault_is_an_outage_that_is_named(front: Front, fault: str) -> None:
    url, access = f"s3://{new_bucket(front.behind)}/some", s3_access(front.endpoint)
    patient, blobs = ObjectBlobs.at(url, access), ObjectBlobs.at(url, access, Connection(timeout_sec=0.2))
    await patient.put_bytes("before", b"kept")
    front.always = fault
    for call in (
        lambda: blobs.put_bytes("k", b"x"),
        lambda: blobs.read("before"),
        lambda: blobs.info("before"),
        lambda: blobs.delete("before"),
    ):
        with pytest.raises(StoreUnavailable, match=r"^The blob store failed at \w+: it (answered 50|could not be)"):
            await call()
    front.always = ""
    front.let_go.set()
    assert await patient.read("before") == b"kept"
    with pytest.raises(NotFound):
        await patient.read("k")


async def test_a_full_store_is_said_to_be_full(front: Front) -> None:
    blobs = blobs_behind(front)
    front.always = "507"
    with pytest.raises(StorageFull):
        await blobs.put_bytes("k", b"x")


@pytest.mark.parametrize("status", ["400", "401", "403", "404", "412", "416", "503"])
async def test_no_error_repeats_what_the_server_says(front: Front, status: str) -> None:
    """S3 answers a wrong signature with the signed request, in which the session token is."""
    blobs = blobs_behind(front, session_token=TOKEN)
    front.always = status
    for call in (lambda: blobs.put_bytes("k", b"x"), lambda: blobs.read("k"), lambda: listed(blobs)):
        try:
            await call()
            raised = None
        except SeatrialError as fault:
            raised = "".join(traceback.format_exception(fault))
        assert raised is not None
        for secret in (TOKEN, "test-secret", "Signature=", front.endpoint):
            assert secret not in raised
    assert any(asked.headers.get("x-amz-security-token") == TOKEN for asked in front.asked), "the server knew it"


async def listed(blobs: ObjectBlobs) -> list[str]:
    return [found.key async for found in blobs.list("")]


def test_nothing_that_prints_an_access_shows_its_secrets() -> None:
    access = S3Access(secret_access_key="test-secret", session_token=TOKEN)
    assert "test-secret" not in repr(access) + str(access) and TOKEN not in repr(access)


@pytest.mark.parametrize(
    "url",
    [
        "s3://AKIACANARY:canary-secret@bucket/x",
        "s3://canary-secret@bucket",
        "s3://bucket?secret=canary-secret",
        "s3://bucket/x#canary-secret",
    ],
)
def test_a_url_with_credentials_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        ObjectBlobs.at(url)
    assert "canary" not in "".join(traceback.format_exception(refused.value)).lower()


@pytest.mark.parametrize("url", ["memory://", "http://files.example/x", "ftp://x", "s3://", "s3:bucket", "s3://b/../c"])
def test_places_that_keep_nothing_are_refused(url: str) -> None:
    with pytest.raises(InvalidInput):
        ObjectBlobs.at(url)


def test_a_secret_in_the_endpoint_is_refused() -> None:
    with pytest.raises(InvalidInput) as refused:
        ObjectBlobs.at("s3://bucket", S3Access(endpoint="http://user:canary@files.example"))
    assert "canary" not in str(refused.value)


async def test_uploads_ask_for_the_encryption_that_is_set(front: Front, tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b"x" * (6 << 20))
    blobs = blobs_behind(front, encryption="aws:kms", kms_key_id="alias/results")
    await blobs.put_bytes("small", b"x")
    await blobs.put_file("large", tmp_path / "large")
    began = [asked for asked in front.asked if asked.method == "PUT" or "?uploads" in asked.path]
    objects = [asked.headers for asked in began if "partNumber" not in asked.path]
    assert len(objects) == 2
    assert {headers["x-amz-server-side-encryption"] for headers in objects} == {"aws:kms"}
    assert {headers["x-amz-server-side-encryption-aws-kms-key-id"] for headers in objects} == {"alias/results"}
    plain = blobs_behind(front)
    await plain.put_bytes("small", b"x")
    assert "x-amz-server-side-encryption" not in front.asked[-1].headers


async def test_the_role_of_the_machine_is_used_without_a_key(
    front: Front, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As ECS and EKS hand out credentials: by an address in the environment, which a worker removes afterwards."""
    role = {"AccessKeyId": "ROLE", "SecretAccessKey": "s", "Token": TOKEN, "Expiration": "2099-01-01T00:00:00Z"}
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    with json_server(role) as address:
        (tmp_path / "authorization").write_text("for-the-agent")
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", address)
        monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", str(tmp_path / "authorization"))
        access = S3Access(endpoint=front.endpoint, region="us-east-1")
        blobs = ObjectBlobs.at(f"s3://{new_bucket(front.behind)}", access)
        monkeypatch.delenv("AWS_CONTAINER_CREDENTIALS_FULL_URI")
        monkeypatch.delenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")
        await blobs.put_bytes("k", b"x")
    assert "Credential=ROLE/" in front.asked[-1].headers["authorization"]
    assert front.asked[-1].headers["x-amz-security-token"] == TOKEN


@contextmanager
def json_server(content: dict[str, str]) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(content).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/role"
        server.shutdown()


async def test_an_upload_that_breaks_leaves_no_object(front: Front, tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b"x" * (12 << 20))
    blobs = blobs_behind(front)
    front.faults[:] = ["", "", *["500"] * 8]  # it begins, a part arrives, then nothing more
    with pytest.raises(StoreUnavailable):
        await blobs.put_file("large", tmp_path / "large")
    front.faults[:] = []
    assert await listed(blobs) == []
    with pytest.raises(NotFound):
        await blobs.info("large")
    assert await blobs.put_file("large", tmp_path / "large") == 12 << 20


async def test_pieces_are_never_of_two_versions(front: Front, tmp_path: Path) -> None:
    blobs = blobs_behind(front)
    for version in (b"1", b"2"):
        (tmp_path / version.decode()).write_bytes(version * (9 << 20))
    await blobs.put_file("k", tmp_path / "1")
    reading = blobs.stream("k")
    first = await anext(reading)
    await blobs.put_file("k", tmp_path / "2")
    with pytest.raises(StoreUnavailable):
        [piece async for piece in reading]
    assert set(first) == {ord("1")}


async def test_reading_a_range_is_one_request(front: Front) -> None:
    """A page that shows a recording asks for many."""
    blobs = blobs_behind(front)
    await blobs.put_bytes("k", b"0123456789")
    front.asked.clear()
    assert await blobs.read("k", 2, 3) == b"234"
    assert [(asked.method, asked.headers["range"]) for asked in front.asked] == [("GET", "bytes=2-4")]


@pytest.mark.long
async def test_long_lists_come_in_pages(behind: str) -> None:
    with s3_front(behind) as front:
        blobs = blobs_behind(front)
        await asyncio.gather(*(blobs.put_bytes(f"many/{number}", b"x") for number in range(1_010)))
        front.asked.clear()
        assert len(await listed(blobs)) == 1_010
        assert len(front.asked) == 2
        assert await blobs.delete("many") == 1_010
        assert await listed(blobs) == []


_MEASURED = """
import asyncio, json, os, resource, sys
from pathlib import Path
from seatrial.adapters.blobs_objects import ObjectBlobs
from tests.s3_server import s3_access

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10

async def main(url, endpoint, file, size):
    blobs = ObjectBlobs.at(url, s3_access(endpoint))
    await blobs.put_bytes("warm", b"x" * 100)
    await blobs.read("warm")
    before = peak()
    sent = await blobs.put_file("large", Path(file))
    up = peak() - before
    got = 0
    async for piece in blobs.stream("large"):
        got += len(piece)
    print(json.dumps({"sent": sent, "got": got, "up_mb": up, "both_mb": peak() - before}))

asyncio.run(main(*sys.argv[1:4], int(sys.argv[4])))
"""


@pytest.mark.parametrize("size", [96 << 20, pytest.param(LARGE, marks=pytest.mark.long)])
def test_a_large_object_costs_little_memory(size: int, tmp_path: Path) -> None:
    file = tmp_path / "large"
    with file.open("wb") as sink:
        sink.truncate(size)
    with s3_process() as endpoint:
        url = f"s3://{new_bucket(endpoint)}/some"
        told = subprocess.run(
            [sys.executable, "-c", _MEASURED, url, endpoint, str(file), str(size)],
            capture_output=True, text=True, cwd=ROOT, check=False,
        )  # fmt: skip
    assert told.returncode == 0, told.stderr
    found = json.loads(told.stdout)
    assert (found["sent"], found["got"]) == (size, size)
    assert found["both_mb"] <= 64, "less than the smaller file, and the same for the larger one"
