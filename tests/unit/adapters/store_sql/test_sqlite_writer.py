"""The thread that writes outlives whatever happens to its connection."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy.engine import Connection

from seatrial.adapters.store_sql.sqlite import SqliteDatabase
from seatrial.errors import StoreUnavailable


def break_connection(connection: Connection) -> None:
    """As after a fault of the disk: not even a roll-back works."""
    driver = connection.connection.driver_connection
    assert driver is not None
    driver.close()


async def test_a_connection_that_broke_is_opened_again(tmp_path: Path) -> None:
    database = SqliteDatabase(str(tmp_path / "store.db"))
    await database.open()
    try:
        await database.write(lambda connection: connection.exec_driver_sql("CREATE TABLE kept (number INTEGER)"))
        for _ in range(2):
            with pytest.raises(StoreUnavailable, match="closed database"):
                await database.write(break_connection)
            await database.write(lambda connection: connection.exec_driver_sql("INSERT INTO kept VALUES (1)"))
        rows = await database.read(lambda connection: connection.exec_driver_sql("SELECT * FROM kept").all())
        assert len(rows) == 2
    finally:
        await database.close()
