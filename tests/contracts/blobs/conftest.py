"""The blobs under test: the fake, local files, and a server that speaks S3."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from moto.server import ThreadedMotoServer

from seatrial.adapters.blobs_files import FileBlobs
from seatrial.adapters.blobs_objects import ObjectBlobs
from seatrial.ports.blobs import Blobs
from seatrial.testing.memory_blobs import MemoryBlobs


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(params=["memory", "files", "s3"])
def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> Blobs:
    if request.param == "memory":
        return MemoryBlobs()
    if request.param == "files":
        return FileBlobs.in_directory(tmp_path / "blobs")
    endpoint = request.getfixturevalue("s3_endpoint")
    bucket = f"bucket-{uuid4().hex[:8]}"
    urllib.request.urlopen(urllib.request.Request(f"{endpoint}/{bucket}", method="PUT")).close()
    return ObjectBlobs.at(
        f"s3://{bucket}/some/prefix",
        endpoint=endpoint,
        access_key_id="test",
        secret_access_key="test",
        region="us-east-1",
        client_options={"allow_http": True},
    )
