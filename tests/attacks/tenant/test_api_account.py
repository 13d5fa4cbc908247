"""Whoever takes over the API's process has an account without rights: its links in the home lead root nowhere.

Each trick is played on the code of root's processes: workers and commands, which use the same home.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from seatrial.adapters.blobs_files import FileBlobs
from seatrial.adapters.seal_fernet import FernetSeal
from seatrial.adapters.store_sql.backup import backup, restore
from seatrial.adapters.store_sql.migrate import upgrade
from seatrial.adapters.wake_up_local import LocalWakeUp
from seatrial.errors import SeatrialError, SetupProblem
from seatrial.settings import Settings
from seatrial.system.file_owner import NOBODYS_ID, Account, act_as
from seatrial.system.take_over import take_over

pytestmark = pytest.mark.sandbox  # only root can act for somebody else

ACCOUNT = Account(NOBODYS_ID, NOBODYS_ID)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The account's home, below a folder that it may not pass, as ``/root`` is."""
    (home := tmp_path / "home").mkdir()
    os.chown(home, *(ACCOUNT.uid, ACCOUNT.gid))
    return home


@pytest.fixture
def treasure(tmp_path: Path) -> Path:
    """A file of root, in a folder of root."""
    (folder := tmp_path / "roots").mkdir()
    (folder / "file").write_text("root's own")
    return folder / "file"


@pytest.fixture
def untouched(treasure: Path) -> Iterator[None]:
    """Whatever happens, root's folder is as it was."""
    yield
    assert [path.name for path in treasure.parent.iterdir()] == ["file"]
    assert treasure.read_text() == "root's own"
    for path in (treasure, treasure.parent):
        assert path.stat().st_uid == 0


def plant(link: Path, target: Path) -> None:
    link.symlink_to(target)
    os.chown(link, ACCOUNT.uid, ACCOUNT.gid, follow_symlinks=False)


def owners(folder: Path) -> set[int]:
    return {path.lstat().st_uid for path in (folder, *folder.rglob("*"))}


def old_home(tmp_path: Path) -> Path:
    """As root left it before the API had an account."""
    for name in ("blobs/trials/1/1/agent/log", "seatrial.db", "secret.key"):
        (path := tmp_path / "old" / name).parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return tmp_path / "old"


def test_a_home_of_root_is_given_whole(tmp_path: Path) -> None:
    home = old_home(tmp_path)
    assert take_over(home, ACCOUNT) == []
    assert owners(home) == {ACCOUNT.uid}
    assert take_over(home, ACCOUNT) == []


@pytest.mark.usefixtures("untouched")
def test_a_link_in_the_home_gives_nothing_else_away(tmp_path: Path, treasure: Path) -> None:
    home = old_home(tmp_path)
    (home / "blobs" / "file").symlink_to(treasure)
    (home / "folder").symlink_to(treasure.parent)
    take_over(home, ACCOUNT)
    assert owners(home) == {ACCOUNT.uid}


@pytest.mark.usefixtures("untouched")
def test_a_second_name_of_another_file_gives_nothing_away(tmp_path: Path, treasure: Path) -> None:
    home = old_home(tmp_path)
    os.link(treasure, home / "blobs" / "second")
    assert take_over(home, ACCOUNT) == ["second"]


@pytest.mark.usefixtures("untouched")
def test_what_the_account_added_while_it_was_interrupted_is_not_looked_at(tmp_path: Path, treasure: Path) -> None:
    home = old_home(tmp_path)
    os.chown(home / "blobs", ACCOUNT.uid, ACCOUNT.gid)
    os.link(treasure, home / "blobs" / "second")
    take_over(home, ACCOUNT)
    assert home.stat().st_uid == ACCOUNT.uid


def test_files_of_a_third_user_stay_his(tmp_path: Path) -> None:
    home = old_home(tmp_path)
    os.chown(home / "seatrial.db", 12345, 12345)
    assert take_over(home, ACCOUNT) == ["seatrial.db"]
    assert (home / "seatrial.db").stat().st_uid == 12345


async def test_root_wakes_workers_in_an_honest_home(home: Path) -> None:
    await LocalWakeUp(home).announce()
    assert (home / "wake").read_bytes() == b"." and owners(home) == {ACCOUNT.uid}


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize("make", [plant, lambda link, target: os.link(target, link)], ids=["link", "hard link"])
async def test_a_wake_up_is_written_into_no_other_file(
    home: Path, treasure: Path, make: Callable[[Path, Path], None]
) -> None:
    make(home / "wake", treasure)
    with pytest.raises(OSError):
        await LocalWakeUp(home).announce()


def test_root_makes_the_secret_key_of_an_honest_home(home: Path) -> None:
    seal = FernetSeal(home)
    assert seal.open(seal.close("sk-1")) == "sk-1" and FernetSeal(home).fingerprint() == seal.fingerprint()
    assert owners(home) == {ACCOUNT.uid} and (home / "secret.key").stat().st_mode & 0o777 == 0o600


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize("make", [plant, lambda link, target: os.link(target, link)], ids=["link", "hard link"])
def test_no_other_file_serves_as_secret_key(home: Path, treasure: Path, make: Callable[[Path, Path], None]) -> None:
    make(home / "secret.key", treasure)
    with pytest.raises((OSError, SeatrialError)):
        FernetSeal(home).fingerprint()


async def test_root_uses_the_files_of_an_honest_home(home: Path, tmp_path: Path) -> None:
    blobs = FileBlobs.in_directory(home / "blobs")
    (work := tmp_path / "work" / "agent").mkdir(parents=True, mode=0o700)
    (work / "log").write_text("kept")
    os.chmod(work / "log", 0o600)
    assert await blobs.take_folder("trials/1/1", work.parent, ["agent/log"]) == [4]
    await blobs.put_bytes("trials/1/1.files.json", b"[]")
    assert await blobs.read("trials/1/1/agent/log") == b"kept"
    assert owners(home) == {ACCOUNT.uid}
    with ThreadPoolExecutor(1, initializer=act_as, initargs=(ACCOUNT,)) as api:  # the API's process removes them
        folder = os.open(home, os.O_RDONLY)
        api.submit(shutil.rmtree, "blobs/trials", dir_fd=folder).result()
        os.close(folder)
    assert list((home / "blobs").iterdir()) == []


WRITES: dict[str, Callable[[FileBlobs, Path], Awaitable[object]]] = {
    "put_bytes": lambda blobs, _: blobs.put_bytes("trials/new", b"x"),
    "put_bytes over": lambda blobs, _: blobs.put_bytes("trials/file", b"x"),
    "put_file": lambda blobs, own: blobs.put_file("trials/file", own / "log"),
    "take_file": lambda blobs, own: blobs.take_file("trials/file", own / "log"),
    "take_folder": lambda blobs, own: blobs.take_folder("trials/1", own, ["log"]),
    "delete": lambda blobs, _: blobs.delete("trials/file"),
    "read": lambda blobs, _: blobs.read("trials/file"),
}


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize("way", WRITES)
async def test_files_are_kept_in_no_folder_of_root(home: Path, treasure: Path, tmp_path: Path, way: str) -> None:
    treasure.chmod(0o600)
    blobs = FileBlobs.in_directory(home / "blobs")
    plant(home / "blobs" / "trials", treasure.parent)
    (own := tmp_path / "work").mkdir()
    (own / "log").write_text("content of a try")
    with pytest.raises(SeatrialError):
        await WRITES[way](blobs, own)


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize("way", WRITES)
async def test_the_folder_of_files_is_no_link(home: Path, treasure: Path, tmp_path: Path, way: str) -> None:
    treasure.chmod(0o600)
    plant(home / "blobs", treasure.parent)
    (own := tmp_path / "work").mkdir()
    (own / "log").write_text("content of a try")
    with pytest.raises(SeatrialError):
        await WRITES[way](FileBlobs.in_directory(home / "blobs"), own)


@pytest.mark.usefixtures("untouched")
async def test_a_link_to_a_file_of_root_is_not_read(home: Path, treasure: Path) -> None:
    treasure.chmod(0o600)
    blobs = FileBlobs.in_directory(home / "blobs")
    plant(home / "blobs" / "link", treasure)
    os.link(treasure, home / "blobs" / "second")
    os.mkfifo(home / "blobs" / "pipe")
    for name in ("link", "second", "pipe"):
        with pytest.raises(SeatrialError):
            await blobs.read(name)


def store_of(home: Path) -> str:
    return f"sqlite:///{home}/seatrial.db"


async def test_root_opens_the_store_of_an_honest_home(home: Path, tmp_path: Path) -> None:
    """Backup and restore go to and from places that the account cannot reach."""
    await upgrade(store_of(home))
    await backup(store_of(home), tmp_path / "copy.db")
    assert (tmp_path / "copy.db").stat().st_uid == 0
    await restore(store_of(home), tmp_path / "copy.db")
    assert owners(home) == {ACCOUNT.uid}


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize("name", ["seatrial.db", "seatrial.db-writer"])
async def test_the_store_makes_no_file_elsewhere(home: Path, treasure: Path, name: str) -> None:
    plant(home / name, treasure.parent / "new")
    with pytest.raises((SeatrialError, OSError)):
        await upgrade(store_of(home))


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize("name", ["seatrial.db", "seatrial.db-wal", "seatrial.db-shm", "seatrial.db-writer"])
async def test_the_store_changes_no_second_name(home: Path, treasure: Path, name: str) -> None:
    """SQLite of root gives a journal to the owner of the database; here it would be root's file."""
    os.link(treasure, home / name)
    with suppress(SeatrialError):  # it may also take a journal's name away, and make one of its own
        await upgrade(store_of(home))


@pytest.mark.parametrize("name", [".env", "seatrial.toml"])
def test_root_takes_no_settings_from_the_account(home: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """A service that runs in its home would start its next worker with them."""
    monkeypatch.chdir(home)
    (home / name).write_text("SEATRIAL_OCI_RUNTIME=/tmp/mine" if name == ".env" else 'oci_runtime = "/tmp/mine"')
    assert Settings().oci_runtime == "/tmp/mine", "root's own"
    os.chown(home / name, ACCOUNT.uid, ACCOUNT.gid)
    with pytest.raises(SetupProblem):
        Settings()
    (home / name).rename(home / "elsewhere")
    os.chown(home / "elsewhere", 0, 0)
    plant(home / name, home / "elsewhere")
    with pytest.raises(SetupProblem):
        Settings()
