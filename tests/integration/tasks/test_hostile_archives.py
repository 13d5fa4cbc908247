"""Every rule for archives is broken at least once, and each hostile archive has a benign twin that is accepted."""

from __future__ import annotations

import gzip
import stat
import subprocess
import sys
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from seatrial.adapters.archives import ArchiveLimits, Rule, unpack
from seatrial.errors import InvalidArchive
from tests.integration.tasks.archive_makers import (
    LINK,
    PROGRAM,
    Member,
    deflate,
    file,
    hard_link,
    header,
    link,
    quoted_bomb,
    special,
    tar_of,
    zip_of,
)

SMALL = ArchiveLimits(max_bytes=1 << 20)
MEGABYTE = 1 << 20


@dataclass(frozen=True)
class Case:
    name: str
    rule: Rule
    hostile: Callable[[], bytes]
    benign: Callable[[], bytes]
    member: str = ""
    """What the message must name; empty for the whole archive."""


def zipped(name: str, rule: Rule, hostile: list[Member], benign: list[Member], member: str = "") -> Case:
    return Case(name, rule, lambda: zip_of(hostile), lambda: zip_of(benign), member)


def tarred(name: str, rule: Rule, hostile: list[object], benign: list[object], member: str = "") -> Case:
    return Case(name, rule, lambda: tar_of(*hostile), lambda: tar_of(*benign), member)  # type: ignore[arg-type]


def gzip_with(change: Callable[[bytearray], object]) -> bytes:
    data = bytearray(tar_of(file("a", b"x" * 5000)))
    change(data)
    return bytes(data)


def flip(data: bytearray, at: int) -> None:
    data[at] ^= 0xFF


PLAIN = [Member("a")]
TAR = [file("a")]
MANY = 10_000

CASES = [
    # names
    zipped("zip absolute path", Rule.ABSOLUTE_PATH, [Member("/etc/x")], [Member("etc/x")], "/etc/x"),
    tarred("tar absolute path", Rule.ABSOLUTE_PATH, [file("/tmp/x")], [file("tmp/x")], "/tmp/x"),
    zipped("zip slip", Rule.PARENT_FOLDER, [Member("../x")], [Member("..x")], "../x"),
    tarred("tar slip from deeper", Rule.PARENT_FOLDER, [file("a/b/../../../x")], [file("a/b/..c/x")]),
    zipped("backslash", Rule.BACKSLASH, [Member("..\\x")], [Member("x")]),
    zipped("drive letter", Rule.DRIVE_LETTER, [Member("C:/x")], [Member("C/x")], "C:/x"),
    zipped("NUL in a name", Rule.CONTROL_CHARACTER, [Member("a.sh\0.txt")], [Member("a.sh.txt")], "a.sh\\\\x00.txt"),
    tarred("escape sequence in a name", Rule.CONTROL_CHARACTER, [file("a\x1b[2J")], [file("a[2J")]),
    zipped("text direction override", Rule.CONTROL_CHARACTER, [Member("a\u202etxt.exe")], [Member("aé.exe")]),
    zipped("name not UTF-8", Rule.NOT_UTF8, [Member(b"a\xff")], [Member("aÿ")]),
    tarred("tar name not UTF-8", Rule.NOT_UTF8, [file("a\udcff")], [file("aÿ")]),
    zipped("device name", Rule.RESERVED_NAME, [Member("sub/con.txt")], [Member("sub/cone.txt")], "sub/con.txt"),
    zipped("trailing dot", Rule.RESERVED_NAME, [Member("a./b")], [Member("a.b/b")]),
    zipped("long name", Rule.NAME_TOO_LONG, [Member("n" * 256)], [Member("n" * 255)]),
    tarred("long path", Rule.NAME_TOO_LONG, [file("/".join(["n" * 100] * 11))], [file("/".join(["n" * 100] * 10))]),
    zipped("deep path", Rule.TOO_DEEP, [Member("d/" * 32 + "x")], [Member("d/" * 31 + "x")]),
    zipped("no name", Rule.EMPTY_NAME, [Member("")], [Member("a")]),
    zipped("name is the folder itself", Rule.EMPTY_NAME, [Member(".")], [Member("./a")]),
    # collisions
    zipped("zip duplicate", Rule.DUPLICATE, [*PLAIN, Member("a", b"2")], [*PLAIN, Member("b", b"2")], "a"),
    tarred("tar duplicate by another spelling", Rule.DUPLICATE, [file("a"), file("./a")], [file("a"), file("./b")]),
    zipped("case collision", Rule.CASE_COLLISION, [Member("A"), Member("a")], [Member("A"), Member("b")]),
    zipped(
        "case collision of folders", Rule.CASE_COLLISION, [Member("D/x"), Member("d/y")], [Member("D/x"), Member("D/y")]
    ),
    zipped(
        "normalisation collision", Rule.UNICODE_COLLISION, [Member("é"), Member("e\u0301")], [Member("é"), Member("e")]
    ),
    zipped("file and folder", Rule.FILE_AND_FOLDER, [Member("a"), Member("a/b")], [Member("a"), Member("c/b")], "a/b"),
    zipped("folder with content", Rule.FILE_AND_FOLDER, [Member("a/", b"x")], [Member("a/", b"", method=0)]),
    # links
    tarred(
        "write through a link",
        Rule.THROUGH_LINK,
        [file("d/f"), link("l", "d"), file("l/x")],
        [file("d/f"), link("l", "d"), file("d/x")],
        "l/x",
    ),
    tarred(
        "folder becomes a link", Rule.THROUGH_LINK, [file("d/f"), link("d", "e")], [file("d/f"), link("l", "d")], "d"
    ),
    tarred("absolute link", Rule.ABSOLUTE_LINK, [link("l", "/etc/passwd")], [file("etc"), link("l", "etc")], "l"),
    tarred("escaping link", Rule.ESCAPING_LINK, [link("d/l", "../../x")], [file("x"), link("d/l", "../x")], "d/l"),
    zipped(
        "escaping link in a ZIP",
        Rule.ESCAPING_LINK,
        [Member("l", b"../x", attributes=LINK)],
        [Member("x"), Member("l", b"x", attributes=LINK)],
        "l",
    ),
    tarred(
        "links that escape together",
        Rule.ESCAPING_LINK,
        [file("x/y/f"), link("x/y/up", "../.."), link("w", "x/y/up/..")],
        [file("x/y/f"), link("x/y/up", "../.."), link("w", "x/y/up/x")],
        "w",
    ),
    tarred("link loop", Rule.LINK_LOOP, [link("a", "b"), link("b", "a")], [link("a", "b"), file("b")]),
    tarred("hard link out", Rule.PARENT_FOLDER, [hard_link("h", "../../etc/passwd")], [file("a"), hard_link("h", "a")]),
    tarred("absolute hard link", Rule.ABSOLUTE_PATH, [hard_link("h", "/etc/passwd")], [file("a"), hard_link("h", "a")]),
    tarred("hard link to nothing", Rule.HARD_LINK_TARGET, [hard_link("h", "a")], [file("a"), hard_link("h", "a")], "h"),
    tarred(
        "hard link to a link",
        Rule.HARD_LINK_TARGET,
        [file("a"), link("l", "a"), hard_link("h", "l")],
        [file("a"), link("l", "a"), hard_link("h", "a")],
        "h",
    ),
    # kinds
    tarred("character device", Rule.SPECIAL_FILE, [special("null", tarfile.CHRTYPE)], [file("null-file")], "null"),
    tarred("block device", Rule.SPECIAL_FILE, [special("sda", tarfile.BLKTYPE)], [file("sda")], "sda"),
    tarred("FIFO", Rule.SPECIAL_FILE, [special("pipe", tarfile.FIFOTYPE)], [file("pipe")], "pipe"),
    zipped(
        "device in a ZIP",
        Rule.SPECIAL_FILE,
        [Member("d", attributes=(stat.S_IFCHR | 0o666) << 16)],
        [Member("d", attributes=PROGRAM)],
        "d",
    ),
    Case(
        "sparse file",
        Rule.SPARSE_FILE,
        lambda: header("s", b"00000000000\0", b"S") + b"\0" * 1024,
        lambda: header("s", b"00000000000\0") + b"\0" * 1024,
    ),
    # ZIP structure
    zipped("encrypted", Rule.ENCRYPTED, [Member("a", flags=0x801)], PLAIN, "a"),
    zipped("unknown compression", Rule.UNSUPPORTED_METHOD, [Member("a", method=12)], [Member("a", method=0)], "a"),
    zipped("two members, one data", Rule.OVERLAP, [*PLAIN, Member("a", at=0)], [*PLAIN, Member("b")]),
    Case(
        "quoted bomb: kilobytes to gigabytes",
        Rule.OVERLAP,
        lambda: quoted_bomb(250, 20),
        lambda: zip_of([Member(f"{n:04}", b"\0" * 4000) for n in range(250)]),
    ),
    zipped("size understated", Rule.LYING_SIZE, [Member("a", b"x" * 999, size=10)], [Member("a", b"x" * 999)], "a"),
    zipped("size overstated", Rule.LYING_SIZE, [Member("a", b"x" * 10, size=999)], [Member("a", b"x" * 10)], "a"),
    zipped("sizes contradict", Rule.LYING_SIZE, [Member("a", local_size=1)], PLAIN, "a"),
    zipped("data after the data", Rule.LYING_SIZE, [Member("a", b"x", packed=deflate(b"x") + b"hidden")], PLAIN, "a"),
    zipped("wrong checksum", Rule.WRONG_CHECKSUM, [Member("a", crc=1)], PLAIN, "a"),
    zipped("another name in front", Rule.HEADERS_DIFFER, [Member("a", local_name=b"b")], PLAIN, "a"),
    zipped("ZIP64 without its field", Rule.BROKEN_HEADER, [Member("a", size=0xFFFFFFFF)], PLAIN, "a"),
    zipped("corrupt data", Rule.CORRUPT, [Member("a", packed=b"\xff\xff\xff\xff")], PLAIN, "a"),
    Case("wrong count", Rule.WRONG_COUNT, lambda: zip_of(PLAIN, count=2), lambda: zip_of(PLAIN, count=1)),
    Case("split archive", Rule.SEVERAL_DISKS, lambda: zip_of(PLAIN, disk=1), lambda: zip_of(PLAIN)),
    Case(
        "leading member outside the directory",
        Rule.LEADING_DATA,
        lambda: zip_of([Member("b")], before=zip_of(PLAIN)[:60]),
        lambda: zip_of([Member("b")]),
    ),
    Case("trailing data", Rule.TRAILING_DATA, lambda: zip_of(PLAIN, after=b"#!/bin/sh"), lambda: zip_of(PLAIN)),
    Case("cut ZIP", Rule.TRUNCATED, lambda: zip_of(PLAIN)[:-30], lambda: zip_of(PLAIN)),
    Case("no archive", Rule.UNKNOWN_FORMAT, lambda: b"#!/bin/sh\n" * 100, lambda: zip_of(PLAIN)),
    # tar and gzip structure
    Case("gzip checksum", Rule.WRONG_CHECKSUM, lambda: gzip_with(lambda d: flip(d, -8)), lambda: gzip_with(len)),
    Case("gzip length", Rule.LYING_SIZE, lambda: gzip_with(lambda d: flip(d, -4)), lambda: gzip_with(len)),
    Case("cut gzip", Rule.TRUNCATED, lambda: gzip_with(len)[:-12], lambda: gzip_with(len)),
    Case("data after gzip", Rule.TRAILING_DATA, lambda: gzip_with(len) + b"#!/bin/sh", lambda: gzip_with(len)),
    Case("corrupt gzip", Rule.CORRUPT, lambda: gzip_with(len)[:10] + b"\xff" * 40, lambda: gzip_with(len)),
    Case("tar without an end", Rule.TRUNCATED, lambda: tar_of(*TAR, end=False), lambda: tar_of(*TAR)),
    Case(
        "tar cut in a file",
        Rule.TRUNCATED,
        lambda: tar_of(file("a", b"x" * 9000), zipped=False)[:4000],
        lambda: tar_of(file("a", b"x" * 9000), zipped=False),
    ),
    Case("data after the tar's end", Rule.TRAILING_DATA, lambda: tar_of(*TAR, after=b"x" * 512), lambda: tar_of(*TAR)),
    Case(
        "broken header in the middle",
        Rule.BROKEN_HEADER,
        lambda: gzip.compress(tar_of(*TAR, zipped=False, end=False) + b"y" * 2048),
        lambda: gzip.compress(tar_of(*TAR, zipped=False)),
    ),
    Case(
        "negative size",
        Rule.BROKEN_HEADER,
        lambda: header("a", b"\xff" * 12) + b"\0" * 1024,
        lambda: header("a", b"00000000000\0") + b"\0" * 1024,
    ),
    Case(
        "name header of gigabytes",
        Rule.BROKEN_HEADER,
        lambda: header("././@LongLink", b"37777777777\0", b"L") + b"x" * 4096,
        lambda: tar_of(file("n" * 200)),
    ),
    # amounts
    Case(
        "10 001 members",
        Rule.TOO_MANY_MEMBERS,
        lambda: zip_of(Member(f"f{n}", b"") for n in range(MANY + 1)),
        lambda: zip_of(Member(f"f{n}", b"") for n in range(MANY)),
    ),
    Case(
        "10 001 members in a tar",
        Rule.TOO_MANY_MEMBERS,
        lambda: tar_of(*(file(f"f{n}", b"") for n in range(MANY + 1))),
        lambda: tar_of(*(file(f"f{n}", b"") for n in range(MANY))),
    ),
    Case(
        "too large",
        Rule.TOO_LARGE,
        lambda: zip_of([Member("a", b"x" * MEGABYTE), Member("b", b"x")]),
        lambda: zip_of([Member("a", b"x" * (MEGABYTE - 1)), Member("b", b"x")]),
        "b",
    ),
    Case(
        "tar too large",
        Rule.TOO_LARGE,
        lambda: tar_of(file("a", b"x" * MEGABYTE), file("b", b"x")),
        lambda: tar_of(file("a", b"x" * (MEGABYTE - 1)), file("b", b"x")),
        "b",
    ),
]


def listing(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() if p.is_file() else b"" for p in folder.rglob("*")}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_hostile_archive_is_refused_and_leaves_nothing(case: Case, tmp_path: Path) -> None:
    archive = tmp_path / "upload.bin"
    archive.write_bytes(case.hostile())
    (tmp_path / "uploads").mkdir()
    before = listing(tmp_path)
    with pytest.raises(InvalidArchive) as refused:
        unpack(archive, tmp_path / "uploads" / "task", SMALL)
    assert refused.value.rule == case.rule
    if case.member:
        assert f"'{case.member}'" in str(refused.value)
    assert listing(tmp_path) == before


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_benign_twin_is_accepted(case: Case, tmp_path: Path) -> None:
    archive = tmp_path / "upload.bin"
    archive.write_bytes(case.benign())
    task = unpack(archive, tmp_path / "uploads" / "task", SMALL)
    assert any(task.rglob("*"))
    assert [path.name for path in (tmp_path / "uploads").iterdir()] == ["task"]


def test_every_rule_has_a_hostile_archive() -> None:
    covered = {case.rule for case in CASES} | {Rule.COMPRESSION_BOMB}
    assert covered == set(Rule)
    assert len({case.name for case in CASES}) == len(CASES) >= 40


BOMBS = {
    "deflate bomb": lambda: zip_of([Member("a", b"\0" * (400 << 20))]),
    "gzip bomb": lambda: tar_of(file("a", b"\0" * (400 << 20))),
    "42 kB to 4 GB": lambda: quoted_bomb(215, 20),
    "10 001 members": lambda: zip_of(Member(f"f{n}", b"") for n in range(MANY + 1)),
    "a name header of gigabytes": lambda: header("././@LongLink", b"37777777777\0", b"L") + b"x" * 4096,
}
MEASURE = """
import resource, sys, time
from pathlib import Path
from seatrial.adapters.archives import unpack
from seatrial.errors import InvalidArchive
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
before, started = peak(), time.process_time()
try:
    unpack(Path(sys.argv[1]), Path(sys.argv[2]))
except InvalidArchive as refused:
    print(refused.rule.name, time.process_time() - started, peak() - before)
"""


@pytest.mark.parametrize("name", BOMBS)
def test_bomb_is_refused_quickly_and_in_little_memory(name: str, tmp_path: Path) -> None:
    archive = tmp_path / "bomb"
    archive.write_bytes(BOMBS[name]())
    assert archive.stat().st_size < (42_000 if name.startswith("42 kB") else 3 << 20)
    command = [sys.executable, "-c", MEASURE, str(archive), str(tmp_path / "out")]
    rule, seconds, megabytes = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    if name in ("deflate bomb", "gzip bomb"):
        assert rule == Rule.COMPRESSION_BOMB.name
    assert float(seconds) < 8  # of the processor: unpacking all of it takes longer
    assert float(megabytes) < 64
    assert not (tmp_path / "out").exists()


def test_an_ordinary_archive_of_that_size_is_accepted(tmp_path: Path) -> None:
    """The positive control of the bombs: much data that is not compressed beyond belief."""
    line = b"".join(b"%08d,%08d\n" % (n * 7919 % 99999989, n) for n in range(200_000))
    archive = tmp_path / "data.zip"
    archive.write_bytes(zip_of([Member(f"part{n}", line) for n in range(12)]))
    assert sum(path.stat().st_size for path in unpack(archive, tmp_path / "out").iterdir()) > 40 << 20
