"""What an agent leaves is removed whatever it looks like, and nothing beside it is touched."""

from __future__ import annotations

import fcntl
import os
import resource
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from seatrial.sandboxes.oci.leftovers import Leftovers
from seatrial.sandboxes.options import Owner
from seatrial.sandboxes.record import SandboxRecord
from seatrial.system.processes import ProcessIdentity
from seatrial.system.removal import empty_directory, remove_tree
from tests.trials import Workplace
from tests.workplace_fixture import Make

ROOT = Path(__file__).parents[3]


def nested(base: Path, depth: int, name: str) -> None:
    """By descriptor: no path is that long."""
    directory = os.open(base, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=directory)
        below = os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=directory)
        os.close(os.open("file", os.O_CREAT | os.O_WRONLY, 0o600, dir_fd=below))
        os.close(directory)
        directory = below
    os.close(directory)


def protect(path: Path, flags: int) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        fcntl.ioctl(file, 0x40086602, struct.pack("L", flags))
    finally:
        os.close(file)


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "beside").mkdir()
    (tmp_path / "beside" / "precious").write_text("kept")
    (tmp_path / "tree").mkdir()
    yield tmp_path / "tree"
    subprocess.run(["rm", "-rf", tmp_path / "tree"], check=False)  # after a failure: pytest's own removal recurses


def _gone(tree: Path) -> None:
    assert remove_tree(tree) == ""
    assert not os.path.lexists(tree)
    assert (tree.parent / "beside" / "precious").read_text() == "kept"
    assert sorted(path.name for path in tree.parent.iterdir()) == ["beside"]


@pytest.mark.parametrize(
    ("depth", "name"),
    [(1500, "d"), pytest.param(6000, "d", marks=pytest.mark.long), (300, "x" * 255)],
    ids=["recursion", "deeper", "path_max"],
)
def test_nested_directories(tree: Path, depth: int, name: str) -> None:
    nested(tree, depth, name)
    _gone(tree)


def test_comb_of_deep_directories(tree: Path) -> None:
    for number in range(20):
        (tree / f"tooth{number}").mkdir()
        nested(tree / f"tooth{number}", 60, "d")
    _gone(tree)


def test_few_descriptors_are_enough(tree: Path) -> None:
    nested(tree, 2000, "d")
    script = (
        "import resource, sys; from pathlib import Path; from seatrial.system.removal import remove_tree;"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)); sys.setrecursionlimit(250);"
        "sys.exit(remove_tree(Path(sys.argv[1])) or 0)"
    )
    subprocess.run([sys.executable, "-c", script, str(tree)], check=True, cwd=ROOT)
    _gone(tree)
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 64


def _links(tree: Path) -> None:
    (tree / "out").symlink_to(tree.parent / "beside")
    (tree / "file").symlink_to(tree.parent / "beside" / "precious")
    (tree / "self").symlink_to("self")
    (tree / "up").symlink_to("..")


def _special(tree: Path) -> None:
    os.mkfifo(tree / "pipe")
    os.mknod(tree / "zero", 0o020666, os.makedev(1, 5))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tree / "socket"))


def _hard_link(tree: Path) -> None:
    os.link(tree.parent / "beside" / "precious", tree / "same")


def _odd_names(tree: Path) -> None:
    for name in (b"\xff\xfe", b"new\nline", b"-rf", b"..x", b" ", b"\x1b[31m", b"'\"`$()"):
        os.mkdir(os.fsencode(tree) + b"/" + name)
        Path(os.fsdecode(os.fsencode(tree) + b"/" + name + b"/file")).touch()


def _closed(tree: Path) -> None:
    (tree / "closed" / "inner").mkdir(parents=True)
    (tree / "closed" / "inner").chmod(0)
    (tree / "closed").chmod(0)


def _immutable(tree: Path) -> None:
    (tree / "kept").mkdir()
    (tree / "kept" / "file").touch()
    (tree / "log").touch()
    protect(tree / "kept" / "file", 0x10)
    protect(tree / "log", 0x20)
    protect(tree / "kept", 0x10)


@pytest.mark.parametrize("shape", [_links, _special, _hard_link, _odd_names, _closed, _immutable])
def test_hostile_entries(tree: Path, shape: Callable[[Path], None]) -> None:
    try:
        shape(tree)
    except OSError as error:
        pytest.skip(f"not on this file system: {error}")
    _gone(tree)


def test_link_in_the_place_of_the_tree(tree: Path) -> None:
    tree.rmdir()
    tree.symlink_to(tree.parent / "beside")
    _gone(tree)


def test_ordinary_tree_and_none_at_all(tree: Path) -> None:
    (tree / "a" / "b").mkdir(parents=True)
    (tree / "a" / "b" / "file").write_text("x")
    _gone(tree)
    assert remove_tree(tree) == "" and remove_tree(tree / "below" / "nothing") == ""


@pytest.mark.sandbox
def test_mounted_directory_is_left_and_told(tree: Path) -> None:
    """Whatever is mounted there belongs to somebody else. All around it goes."""
    (tree / "a" / "mounted").mkdir(parents=True)
    nested(tree, 30, "d")
    script = (
        "mount --bind {outside} {tree}/a/mounted && {python} -c 'import sys; from pathlib import Path;"
        " from seatrial.system.removal import remove_tree; print(remove_tree(Path(sys.argv[1])))' {tree}"
    ).format(outside=tree.parent / "beside", tree=tree, python=sys.executable)
    done = subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    assert "mounted" in done.stdout
    assert (tree.parent / "beside" / "precious").read_text() == "kept"
    assert [path.name for path in tree.iterdir()] == ["a"]
    _gone(tree)


def test_tree_that_is_filled_meanwhile(tree: Path) -> None:
    """It ends, whoever wins: with an empty place, or with a word about what is left."""
    stop = threading.Event()

    def fill() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            try:
                (tree / f"d{number}" / "e").mkdir(parents=True)
                (tree / f"d{number - 1}").rename(tree / f"d{number}" / "e" / "moved")
            except OSError:
                continue

    writer = threading.Thread(target=fill)
    writer.start()
    try:
        told = remove_tree(tree, patience_sec=1.0)
    finally:
        stop.set()
        writer.join()
    assert told or not tree.exists() or list(tree.iterdir())
    _gone(tree)


def test_emptied_directory_stays(tree: Path) -> None:
    nested(tree, 1200, "d")
    directory = os.open(tree, os.O_RDONLY)
    assert empty_directory(directory) == ""
    os.close(directory)
    assert list(tree.iterdir()) == []


def _leftover(run_dir: Path, name: str) -> Path:
    """Of a process that is gone."""
    home = run_dir / name
    (home / "changes").mkdir(parents=True)
    gone = ProcessIdentity.mine().model_copy(update={"started": 1})
    SandboxRecord.new(name, Owner(install="attacks")).model_copy(update={"process": gone}).write(home)
    return home


@pytest.mark.sandbox
def test_sweep_survives_any_single_leftover(tmp_path: Path) -> None:
    """Deep ones, and one whose files pretend to say which process it was: a pipe there would be waited for."""
    deep, pipe, endless, plain = (_leftover(tmp_path, f"st-{name}") for name in ("deep", "pipe", "endless", "plain"))
    nested(deep / "changes", 1500, "d")
    os.mkfifo(pipe / "changes" / "pid")
    (endless / "changes" / "pid").symlink_to("/dev/zero")
    (plain / "changes" / "file").write_text("x")
    removed = Leftovers(tmp_path).remove()
    assert {record.sandbox for record in removed} == {"st-deep", "st-pipe", "st-endless", "st-plain"}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.sandbox
def test_sweep_skips_what_cannot_be_removed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The next sweep finds it again."""
    stuck, plain = _leftover(tmp_path, "st-1-stuck"), _leftover(tmp_path, "st-2-plain")
    held = stuck / "changes" / "held"
    held.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "held", held], check=True)
    try:
        assert [record.sandbox for record in Leftovers(tmp_path).remove()] == ["st-2-plain"]
        assert "st-1-stuck could not be removed" in caplog.text
        assert not plain.exists()
        assert [record.sandbox for record in Leftovers(tmp_path).find()] == ["st-1-stuck"]
    finally:
        subprocess.run(["umount", held], check=True)
    assert [record.sandbox for record in Leftovers(tmp_path).remove()] == ["st-1-stuck"]


async def test_sandbox_with_nested_directories_ends(make: Make, workplace: Workplace) -> None:
    sandbox = await make()
    made = await sandbox.exec('cd /app; perl -e \'for (1..1500) { mkdir "d"; chdir "d" }\'; echo made')
    assert made.stdout == "made\n"
    await sandbox.stop(delete=True)
    assert not [path for path in workplace.run_dir.glob("*/sandbox.json") if _mentions(path, workplace.install)]


def _mentions(record: Path, install: str) -> bool:
    """Sandboxes of other tests come and go meanwhile."""
    try:
        return f'"{install}"' in record.read_text(errors="replace")
    except OSError:
        return False
