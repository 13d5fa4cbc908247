"""Backups are whole, checked, and can be put back while the store is in use."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from seatrial.adapters.store_sql.backup import backup, problems_of, restore
from seatrial.adapters.store_sql.store import SqlStore
from seatrial.errors import Conflict, InvalidInput, NotFound, Unsupported
from seatrial.ports.store import Page
from tests.contracts.store.samples import submit


async def test_a_backup_holds_the_moment_and_comes_back(sqlite_url: str, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    async with SqlStore.at(sqlite_url) as store:
        kept = await submit(store, trials=3)
        await backup(sqlite_url, copy)
        await submit(store)
        assert len(await store.jobs.page(Page())) == 2
        await restore(sqlite_url, copy)
        assert [job.id for job in await store.jobs.page(Page())] == [kept.id]
        assert (await store.jobs.counts([kept.id]))[kept.id].queued == 3
        await submit(store)
    assert problems_of(tmp_path / "seatrial.db") == [] == problems_of(copy)
    assert [path.name for path in tmp_path.glob("*unfinished*")] == []


async def test_a_backup_can_start_a_new_home(sqlite_url: str, tmp_path: Path) -> None:
    async with SqlStore.at(sqlite_url) as store:
        job = await submit(store)
        install_id = await store.install_id()
    await backup(sqlite_url, tmp_path / "copy.db")
    elsewhere = f"sqlite:///{tmp_path}/new/home/seatrial.db"
    await restore(elsewhere, tmp_path / "copy.db")
    async with SqlStore.at(elsewhere) as store:
        assert await store.jobs.get(job.id) == job and await store.install_id() == install_id


async def test_a_backup_never_overwrites(sqlite_url: str, tmp_path: Path) -> None:
    (tmp_path / "there").write_text("precious")
    with pytest.raises(Conflict):
        await backup(sqlite_url, tmp_path / "there")
    assert (tmp_path / "there").read_text() == "precious"


async def test_what_cannot_be_restored_leaves_the_store_alone(sqlite_url: str, tmp_path: Path) -> None:
    async with SqlStore.at(sqlite_url) as store:
        job = await submit(store, trials=200)
        await backup(sqlite_url, tmp_path / "good.db")
        content = (tmp_path / "good.db").read_bytes()
        (tmp_path / "cut.db").write_bytes(content[: len(content) // 2])
        (tmp_path / "text.db").write_text("not a database at all, but long enough to be looked at" * 100)
        sqlite3.connect(tmp_path / "other.db").execute("CREATE TABLE something (id)").connection.close()
        newer = sqlite3.connect(tmp_path / "newer.db")
        sqlite3.connect(tmp_path / "good.db").backup(newer)
        newer.execute("UPDATE alembic_version SET version_num = '9999'")
        newer.commit()
        newer.close()
        for name in ("cut.db", "text.db", "other.db", "newer.db"):
            with pytest.raises(InvalidInput, match="cannot be used"):
                await restore(sqlite_url, tmp_path / name)
        with pytest.raises(NotFound):
            await restore(sqlite_url, tmp_path / "missing.db")
        assert (await store.jobs.counts([job.id]))[job.id].queued == 200


async def test_postgresql_has_its_own_tools(tmp_path: Path) -> None:
    url = "postgresql+asyncpg://me@host/name"
    with pytest.raises(Unsupported, match="pg_dump"):
        await backup(url, tmp_path / "copy")
    with pytest.raises(Unsupported, match="pg_restore"):
        await restore(url, tmp_path / "copy")
