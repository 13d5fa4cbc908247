"""A database file that is no longer what SQLite wrote: one sentence with the way out, and the way out works."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from seatrial.adapters.store_sql.store import SqlStore
from seatrial.errors import SetupProblem
from seatrial.ports.store import Page
from tests.command_line import CommandLine
from tests.contracts.store.samples import submit


def garbage_in_the_header(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(b"This is not a database at all. ")


def truncated(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2 + 100)


def malformed_pages(path: Path) -> None:
    """Everything but the first page, which tells what kind of file it is."""
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * (size - 4096))


def another_file(path: Path) -> None:
    path.write_bytes(b"\x7fELF" + bytes(20_000))


DAMAGES = [garbage_in_the_header, truncated, malformed_pages, another_file]
Damage = Callable[[Path], None]


def whole_in_one_file(path: Path) -> None:
    with closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA wal_checkpoint(TRUNCATE)")


@pytest.mark.parametrize("damage", DAMAGES)
async def test_the_store_says_so(sqlite_url: str, tmp_path: Path, damage: Damage) -> None:
    path = tmp_path / "seatrial.db"
    async with SqlStore.at(sqlite_url) as store:
        for _ in range(20):
            await submit(store, trials=20)
        assert len(await store.jobs.page(Page())) == 20, "the control"
    whole_in_one_file(path)
    damage(path)
    with pytest.raises(SetupProblem, match="damaged") as said:
        async with SqlStore.at(sqlite_url) as store:
            await store.jobs.page(Page())
            await submit(store)
    assert "seatrial db restore" in said.value.fix


@pytest.mark.parametrize("damage", DAMAGES)
def test_commands_say_one_sentence_and_a_backup_helps(cli: CommandLine, damage: Damage) -> None:
    cli("job", "list")
    cli("db", "backup", cli.directory / "backup.db")
    path = cli.home / "seatrial.db"
    whole_in_one_file(path)
    damage(path)
    for command in (("job", "list"), ("gc",), ("up", "--port", "0")):
        said = cli(*command, status=1).err
        assert "is damaged" in said and "seatrial db restore" in said and len(said.strip().splitlines()) <= 2, said
    restored = cli("db", "restore", cli.directory / "backup.db", "--force").out
    assert "former database" in restored
    cli("job", "list")
    assert len(list(cli.home.glob("seatrial.db.before-*"))) >= 1, "the damaged file is kept"
