"""Backup and restore of the SQLite store while it is in use. ``seatrial db backup|restore`` call it.

PostgreSQL has its own tools (``pg_dump``, ``pg_restore``, continuous archiving), which the operator of the server uses.
The errors here name them.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

from sqlalchemy.engine import make_url

from seatrial.adapters.store_sql.migrate import HEAD, upgrade
from seatrial.adapters.store_sql.sqlite import act_for_store
from seatrial.errors import Conflict, InvalidInput, NotFound, Unsupported
from seatrial.system.file_owner import Account, open_owned, owner_of
from seatrial.system.removal import scratch_directory

_BUSY_SEC = 60.0


async def backup(url: str, target: Path) -> None:
    """A checked copy of the store at one moment; workers go on meanwhile. Never overwrites, never leaves a half."""
    path = _sqlite_file(url, f"pg_dump --format=custom --file={target} DATABASE_URL")
    await asyncio.to_thread(_backup, path, target)


async def set_aside(url: str, target: Path) -> None:
    """Backs up the current store before it is replaced. A damaged store is moved instead."""
    path = _sqlite_file(url, "pg_dump")
    try:
        await asyncio.to_thread(_backup, path, target)
    except (sqlite3.DatabaseError, InvalidInput):
        for ending in ("", "-wal", "-shm"):
            with suppress(FileNotFoundError):
                path.with_name(path.name + ending).rename(target.with_name(target.name + ending))


async def restore(url: str, source: Path) -> None:
    """Replaces the content of the store by a backup in one step, and upgrades its tables.

    Trials that run at that moment belong to the old content: their results are refused. Files are not changed."""
    path = _sqlite_file(url, f"pg_restore --clean --if-exists --dbname=DATABASE_URL {source}")
    await asyncio.to_thread(_restore, path, source)
    await upgrade(url)


def problems_of(path: Path) -> list[str]:
    """The problems of a store's file; empty if it is valid."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as file:
            found = [row[0] for row in file.execute("PRAGMA integrity_check") if row[0] != "ok"]
            found += [
                f"{row[0]} refers to a missing row of {row[2]}" for row in file.execute("PRAGMA foreign_key_check")
            ]
            return found or _revision_problems(file)
    except sqlite3.DatabaseError as fault:
        return [str(fault)]


def _revision_problems(file: sqlite3.Connection) -> list[str]:
    if not file.execute("SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'").fetchone():
        return ["it is not a Seatrial store"]
    [revision] = file.execute("SELECT version_num FROM alembic_version").fetchone()
    return [f"a newer version of Seatrial made it (revision {revision})"] if revision > HEAD else []


def _backup(path: Path, target: Path) -> None:
    if not path.exists():
        raise NotFound(f"There is no store at {path}.")
    if target.exists():
        raise Conflict(f"{target} exists.", fix="Choose another name, or remove it first.")
    owner = owner_of(path.parent)
    if owner == owner_of(target.absolute().parent):
        _for_store(path, _finish_backup, target, lambda unfinished: _copy_out(path, unfinished))
        return
    with scratch_directory("seatrial-store-") as crossing:  # the store's owner writes nowhere else
        _give(crossing, owner)
        _for_store(path, _copy_out, path, crossing / "copy")
        _finish_backup(target, lambda unfinished: _copy_plain(crossing / "copy", unfinished))


def _finish_backup(target: Path, write: Callable[[Path], None]) -> None:
    unfinished = target.with_name(target.name + ".unfinished")
    unfinished.unlink(missing_ok=True)
    try:
        write(unfinished)
        _refuse_damaged(unfinished, "The backup")
        unfinished.rename(target)
    finally:
        unfinished.unlink(missing_ok=True)


def _restore(path: Path, source: Path) -> None:
    if not source.exists():
        raise NotFound(f"There is no backup at {source}.")
    _refuse_damaged(source, "The backup")
    path.parent.mkdir(parents=True, exist_ok=True)
    owner = owner_of(path.parent)
    with scratch_directory("seatrial-store-") as crossing:
        if owner is not None:  # it may not be able to read the backup where it is
            _copy_in(source, crossing / "copy")
            source = crossing / "copy"
            _give(source, owner)
            _give(crossing, owner)
        _for_store(path, _copy_in, source, path)
    _for_store(path, _refuse_damaged, path, "The restored store")


def _copy_out(path: Path, target: Path) -> None:
    with closing(sqlite3.connect(path, timeout=_BUSY_SEC)) as store:
        store.execute("VACUUM INTO ?", (str(target),))


def _copy_in(source: Path, path: Path) -> None:
    with (
        closing(sqlite3.connect(source)) as copy,
        closing(sqlite3.connect(path, timeout=_BUSY_SEC)) as store,
    ):
        copy.backup(store)


def _copy_plain(source: Path, target: Path) -> None:
    with os.fdopen(open_owned(source, os.O_RDONLY), "rb") as copy, target.open("xb") as sink:
        shutil.copyfileobj(copy, sink)


def _give(place: Path, owner: Account | None) -> None:
    if owner is not None:
        os.chown(place, owner.uid, owner.gid, follow_symlinks=False)


def _for_store[**P](path: Path, work: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> None:
    """In a thread of its own that acts for the store's owner."""
    with ThreadPoolExecutor(1, "store-copy", lambda: act_for_store(path)) as thread:
        thread.submit(work, *args, **kwargs).result()


def _refuse_damaged(path: Path, what: str) -> None:
    if problems := problems_of(path):
        raise InvalidInput(f"{what} {path} cannot be used: {'; '.join(problems[:5])}.")


def _sqlite_file(url: str, instead: str) -> Path:
    address = make_url(url)
    if address.get_backend_name() != "sqlite" or not address.database:
        raise Unsupported("A store in PostgreSQL is backed up with PostgreSQL's own tools.", fix=f"Run: {instead}")
    return Path(address.database)
