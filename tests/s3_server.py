"""A server that speaks S3, for tests: moto's, in this process or in one of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

from moto.server import ThreadedMotoServer

from seatrial.adapters.blobs_objects import S3Access
from tests.waiting import until


def s3_access(endpoint: str, **more: str) -> S3Access:
    return S3Access(
        endpoint=endpoint, region="us-east-1", access_key_id="test", secret_access_key="test-secret", **more
    )


def s3_settings(endpoint: str, bucket: str) -> dict[str, str]:
    """The same as environment variables, under the names that people have."""
    return {
        "SEATRIAL_BLOBS_URL": f"s3://{bucket}/results",
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test-secret",
    }


def new_bucket(endpoint: str, name: str = "") -> str:
    bucket = name or f"bucket-{uuid4().hex[:8]}"
    urllib.request.urlopen(urllib.request.Request(f"{endpoint}/{bucket}", method="PUT")).close()
    return bucket


@contextmanager
def s3_server() -> Iterator[str]:
    """The address of a server in this process."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
    finally:
        server.stop()


@contextmanager
def s3_process() -> Iterator[str]:
    """The address of a server in a process of its own, whose memory is not this one's."""
    reading, writing = os.pipe()
    with os.fdopen(reading) as told:
        process = subprocess.Popen([sys.executable, "-c", _SERVE, str(writing)], pass_fds=[writing])
        os.close(writing)
        try:
            endpoint = f"http://127.0.0.1:{told.readline().strip()}"
            until(lambda: _answers(endpoint), "the S3 server to answer")
            yield endpoint
        finally:
            process.kill()
            process.wait()


_SERVE = """
import os, sys
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
os.write(int(sys.argv[1]), b"%d\\n" % server.get_host_and_port()[1])
server._thread.join()
"""


def _answers(endpoint: str) -> bool:
    try:
        urllib.request.urlopen(f"{endpoint}/moto-api/").close()
    except urllib.error.URLError:
        return False
    return True
