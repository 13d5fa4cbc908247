"""The blobs under test: the fake, local files, and a server that speaks S3."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from seatrial.adapters.blobs_files import FileBlobs
from seatrial.adapters.blobs_objects import ObjectBlobs
from seatrial.ports.blobs import Blobs
from seatrial.testing.memory_blobs import MemoryBlobs
from tests.s3_server import new_bucket, s3_access, s3_server


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    with s3_server() as endpoint:
        yield endpoint


@pytest.fixture(params=["memory", "files", "s3"])
def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> Blobs:
    if request.param == "memory":
        return MemoryBlobs()
    if request.param == "files":
        return FileBlobs.in_directory(tmp_path / "blobs")
    endpoint = request.getfixturevalue("s3_endpoint")
    return ObjectBlobs.at(f"s3://{new_bucket(endpoint)}/some/prefix", s3_access(endpoint))
