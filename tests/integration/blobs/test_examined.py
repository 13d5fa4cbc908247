"""What ``seatrial doctor`` says about the place for files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from seatrial.cli.commands.doctor import _files
from seatrial.settings import Settings
from tests.s3_front import Front, s3_front
from tests.s3_server import new_bucket, s3_server


@pytest.fixture
def front() -> Iterator[Front]:
    with s3_server() as behind, s3_front(behind) as front:
        yield front


def settings(home: Path, front: Front, bucket: str) -> Settings:
    return Settings(
        _env_file=None,
        home=home,
        blobs_url=f"s3://{bucket}/results",
        s3_endpoint=front.endpoint,
        s3_access_key_id="test",
        s3_secret_access_key="test-secret",
    )


async def test_a_bucket_works_or_the_reason_is_said(tmp_path: Path, front: Front) -> None:
    bucket = new_bucket(front.behind)
    mine = settings(tmp_path / "one", front, bucket)
    assert await _files(mine) == f"s3://{bucket}/results works"
    assert "another installation" in await _files(settings(tmp_path / "two", front, bucket))
    assert "(NoSuchBucket). Make the bucket" in await _files(settings(tmp_path / "one", front, "missing-bucket"))
    front.always = "403"
    said = await _files(mine)
    assert "403 Forbidden (SignatureDoesNotMatch)" in said and "Check the credentials" in said
