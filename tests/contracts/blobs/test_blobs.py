"""What every place for files gives."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from seatrial.errors import InvalidInput, NotFound
from seatrial.ports.blobs import Blobs


async def listed(blobs: Blobs, prefix: str) -> dict[str, int]:
    return {found.key: found.size async for found in blobs.list(prefix)}


async def content(blobs: Blobs, key: str) -> bytes:
    return b"".join([piece async for piece in blobs.stream(key)])


async def test_bytes_come_back_as_they_were(blobs: Blobs) -> None:
    await blobs.put_bytes("a/b.bin", b"\x00\xff hello")
    assert await blobs.read("a/b.bin") == b"\x00\xff hello"
    assert await content(blobs, "a/b.bin") == b"\x00\xff hello"
    info = await blobs.info("a/b.bin")
    assert (info.key, info.size) == ("a/b.bin", 8)
    assert [found async for found in blobs.list("a")] == [info], "a list says when it was written, too"
    assert info.modified_at.tzinfo is not None


async def test_an_empty_blob_is_there(blobs: Blobs) -> None:
    await blobs.put_bytes("empty", b"")
    assert await blobs.read("empty") == b"" and await content(blobs, "empty") == b""
    assert (await blobs.info("empty")).size == 0


async def test_a_file_of_several_parts_is_kept_whole(blobs: Blobs, tmp_path: Path) -> None:
    source = tmp_path / "large"
    pattern = bytes(range(256)) * 4096  # 1 MiB
    source.write_bytes(pattern * 12 + b"end")
    assert await blobs.put_file("x/large", source) == 12 * len(pattern) + 3
    assert await content(blobs, "x/large") == source.read_bytes()
    assert await blobs.read("x/large", start=12 * len(pattern) - 2) == pattern[-2:] + b"end"


async def test_a_small_file_is_kept(blobs: Blobs, tmp_path: Path) -> None:
    source = tmp_path / "small"
    source.write_bytes(b"small")
    assert await blobs.put_file("x/small", source) == 5
    assert await blobs.read("x/small") == b"small"


async def test_a_range_of_several_parts_is_streamed(blobs: Blobs, tmp_path: Path) -> None:
    source = tmp_path / "large"
    source.write_bytes(b"".join(number.to_bytes(4) for number in range(3 << 20)))  # 12 MiB, no part like another
    await blobs.put_file("x/large", source)
    whole = source.read_bytes()
    for start, length in ((0, None), (5 << 20, 6 << 20), (12 << 20, 5), (12 << 20, None), ((12 << 20) - 3, 99), (7, 0)):
        pieces = [piece async for piece in blobs.stream("x/large", start, length)]
        assert b"".join(pieces) == whole[start : None if length is None else start + length]
        assert all(0 < len(piece) <= 5 << 20 for piece in pieces)


async def test_ranges_end_where_the_content_ends(blobs: Blobs) -> None:
    await blobs.put_bytes("k", b"0123456789")
    assert await blobs.read("k", 2, 3) == b"234"
    assert await blobs.read("k", 8) == b"89"
    assert await blobs.read("k", 8, 100) == b"89"
    assert await blobs.read("k", 10) == await blobs.read("k", 99, 5) == await blobs.read("k", 3, 0) == b""


async def test_writing_again_replaces_the_whole(blobs: Blobs) -> None:
    await blobs.put_bytes("k", b"a long first version")
    await blobs.put_bytes("k", b"short")
    assert await blobs.read("k") == b"short"


async def test_listing_goes_by_whole_names(blobs: Blobs) -> None:
    for key in ("trials/1/1/log", "trials/1/2/log", "trials/1/2/deep/er", "trials/12/1/log"):
        await blobs.put_bytes(key, key.encode())
    assert await listed(blobs, "trials/1") == {"trials/1/1/log": 14, "trials/1/2/log": 14, "trials/1/2/deep/er": 18}
    assert set(await listed(blobs, "")) == {*await listed(blobs, "trials/1"), "trials/12/1/log"}
    assert await listed(blobs, "trials/3") == {}


async def test_deleting_takes_what_is_below_and_nothing_beside(blobs: Blobs) -> None:
    for key in ("a/1/x", "a/1/y/z", "a/10", "b"):
        await blobs.put_bytes(key, b"content")
    assert await blobs.delete("a/1") == 2
    assert set(await listed(blobs, "")) == {"a/10", "b"}
    assert await blobs.delete("b") == 1
    assert await blobs.delete("b") == 0
    with pytest.raises(InvalidInput):
        await blobs.delete("")
    assert set(await listed(blobs, "")) == {"a/10"}


async def test_unknown_keys_are_not_found(blobs: Blobs) -> None:
    await blobs.put_bytes("there", b"")
    with pytest.raises(NotFound):
        await blobs.read("missing")
    with pytest.raises(NotFound):
        await blobs.info("there/not")
    with pytest.raises(NotFound):
        await content(blobs, "missing")
    await blobs.put_bytes("folder/file", b"")
    with pytest.raises(NotFound):
        await blobs.info("folder")


ODD_NAMES = [
    "with space",
    "tail#1",
    "a%20b",
    "a%23",
    "#",
    "ü-日本",
    "~",
    "q?*",
    "<x>",
    "'\"",
    ".hidden",
    "a..b",
    "+&=",
    "x" * 200,
]


@pytest.mark.parametrize("name", ODD_NAMES)
async def test_odd_names_are_kept(blobs: Blobs, name: str) -> None:
    key = f"odd/{name}/{name}"
    await blobs.put_bytes(key, b"odd")
    assert await blobs.read(key) == b"odd"
    assert await listed(blobs, f"odd/{name}") == {key: 3}
    assert await blobs.delete("odd") == 1
    assert await listed(blobs, "") == {}


IMPOSSIBLE_KEYS = [
    "",
    "/etc/passwd",
    "../outside",
    "a/../../outside",
    "a/..",
    "./a",
    "a//b",
    "a/",
    "nul\x00",
    "line\nbreak",
    "\x1b[31m",
    "back\\slash",
    "x" * 201,
    "/".join(["part"] * 200),
    "\u202eright-to-left",
]


@pytest.mark.parametrize("key", IMPOSSIBLE_KEYS)
async def test_impossible_keys_are_refused_everywhere(blobs: Blobs, key: str, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"x")
    for call in (
        lambda: blobs.put_bytes(key, b"x"),
        lambda: blobs.put_file(key, source),
        lambda: blobs.read(key),
        lambda: content(blobs, key),
        lambda: blobs.info(key),
        lambda: blobs.delete(key),
    ):
        with pytest.raises(InvalidInput):
            await call()
    assert await listed(blobs, "") == {}


async def test_a_reader_never_sees_half_of_a_write(blobs: Blobs) -> None:
    versions = [bytes([number]) * 300_000 for number in range(8)]
    await blobs.put_bytes("k", versions[0])
    done = False

    async def read_on() -> int:
        looks = 0
        while not done:
            assert await content(blobs, "k") in versions
            looks += 1
            await asyncio.sleep(0)
        return looks

    reading = [asyncio.create_task(read_on()) for _ in range(2)]
    for _ in range(5):
        await asyncio.gather(*(blobs.put_bytes("k", version) for version in versions))
    done = True
    assert min(await asyncio.gather(*reading)) > 0


async def test_many_files_at_once(blobs: Blobs) -> None:
    await asyncio.gather(*(blobs.put_bytes(f"many/{number % 7}/{number}", b"x" * number) for number in range(60)))
    assert await listed(blobs, "many") == {f"many/{number % 7}/{number}": number for number in range(60)}
    assert await blobs.delete("many") == 60


async def test_a_taken_file_is_there_whole_and_replaces_what_was(blobs: Blobs, tmp_path: Path) -> None:
    await blobs.put_bytes("x/taken", b"before")
    source = tmp_path / "source"
    source.write_bytes(b"after, and longer")
    assert await blobs.take_file("x/taken", source) == 17
    assert await blobs.read("x/taken") == b"after, and longer"
    source.write_bytes(b"made anew by its owner")
    assert await blobs.read("x/taken") == b"after, and longer"


async def test_a_taken_file_may_have_any_name(blobs: Blobs, tmp_path: Path) -> None:
    for key in ("x/plain.txt", "x/with space", "x/50% #1", "x/größe"):
        source = tmp_path / "source"
        source.write_bytes(key.encode())
        await blobs.take_file(key, source)
        assert await blobs.read(key) == key.encode()
    assert {blob.key async for blob in blobs.list("x")} == {"x/plain.txt", "x/with space", "x/50% #1", "x/größe"}


async def test_a_taken_folder_is_there_whole(blobs: Blobs, tmp_path: Path) -> None:
    for folder, names in (("1", ("a.txt", "deep/er/b.txt")), ("2", ("größe", "deep/c d"))):
        root = tmp_path / folder
        for name in names:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(name)
        assert await blobs.take_folder(f"x/{folder}", root, names) == [len(name.encode()) for name in names]
        for name in names:
            assert await blobs.read(f"x/{folder}/{name}") == name.encode()
    assert len([blob async for blob in blobs.list("x")]) == 4


async def test_a_folder_taken_where_files_are_joins_them(blobs: Blobs, tmp_path: Path) -> None:
    await blobs.put_bytes("x/1/earlier", b"kept")
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "later").write_bytes(b"new")
    assert await blobs.take_folder("x/1", tmp_path / "root", ["later"]) == [3]
    assert await blobs.read("x/1/earlier") == b"kept"
    assert await blobs.read("x/1/later") == b"new"
