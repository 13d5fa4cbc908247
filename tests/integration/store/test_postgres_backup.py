"""An installation on PostgreSQL is saved and put back, as docs/how-to/back-up-and-restore.md says."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from pathlib import Path

import pytest
from sqlalchemy.engine import make_url

from seatrial.adapters.blobs_files import FileBlobs
from seatrial.adapters.store_sql.store import SqlStore
from seatrial.testing.postgres import PostgresServer
from tests.contracts.store.samples import MINUTE, NOON, passed, submit
from tests.databases import PostgresDatabases

pytestmark = pytest.mark.postgres


def _run(program: Path, *arguments: str) -> None:
    subprocess.run([program, *arguments], check=True, capture_output=True)


def _name(url: str) -> str:
    return make_url(url).database or ""


async def test_database_and_files_come_back_together(
    postgres_server: PostgresServer, postgres_databases: PostgresDatabases, tmp_path: Path
) -> None:
    url = await postgres_databases.fresh()
    blobs = FileBlobs.in_directory(tmp_path / "blobs")
    async with SqlStore.at(url) as store:
        job = await submit(store, trials=2)
        [claimed] = await store.trials.claim("w", MINUTE, 1, NOON)
        await store.trials.finish(claimed.id, 1, passed(), NOON)
        await blobs.put_bytes("trials/1/1/verifier/stdout.txt", b"ok\n")
        place = ("--host", str(postgres_server.directory), "--username", "postgres")
        # The database first: a file that is newer than it is garbage to `gc`, a result without its file is a loss.
        dump = str(tmp_path / "seatrial.dump")
        await asyncio.to_thread(
            _run, postgres_server.programs / "pg_dump", *place, "--format=custom", f"--file={dump}", _name(url)
        )
        await asyncio.to_thread(shutil.copytree, tmp_path / "blobs", tmp_path / "copy")
        await submit(store)
        install_id = await store.install_id()

    restored = await postgres_databases.empty()
    await asyncio.to_thread(
        _run,
        postgres_server.programs / "pg_restore",
        *place,
        "--no-owner",
        "--exit-on-error",
        f"--dbname={_name(restored)}",
        dump,
    )
    async with SqlStore.at(restored) as store:
        assert await store.install_id() == install_id
        counts = (await store.jobs.counts([job.id]))[job.id]
        assert (counts.passed, counts.queued) == (1, 1)
        # It goes on where it was.
        assert len(await store.trials.claim("v", MINUTE, 5, NOON + MINUTE)) == 1
    kept = FileBlobs.in_directory(tmp_path / "copy")
    assert await kept.read("trials/1/1/verifier/stdout.txt") == b"ok\n"
