from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from seatrial.sandboxes.images.batch import catalogue
from seatrial.sandboxes.images.locks import UseRecords
from seatrial.sandboxes.images.prune import Pruner

HOUR = 3600.0


@pytest.fixture
def uses(tmp_path: Path) -> UseRecords:
    return UseRecords(tmp_path / "uses")


def used_ago(uses: UseRecords, tmp_path: Path, digest: str, seconds: float) -> None:
    uses.note(digest)
    when = time.time() - seconds
    os.utime(tmp_path / "uses" / digest.replace(":", "-"), (when, when))


def disk(store: Any, size: int = 1000) -> Any:
    """Free space that grows by 100 with every image that goes."""
    return lambda _: size - 100 * len(store.images)


async def test_the_least_recently_used_go_until_there_is_room(store: Any, uses: UseRecords, tmp_path: Path) -> None:
    for number in range(5):
        image = store.add(f"localhost/x:{number}")
        used_ago(uses, tmp_path, image.digest, (number + 1) * HOUR)
    pruner = Pruner(store, uses, tmp_path, low_water_bytes=700, free=disk(store))
    report = await pruner.make_room()
    assert report is not None
    assert [image.references for image in report.removed] == [("localhost/x:4",), ("localhost/x:3",)]
    assert await pruner.make_room() is None


async def test_with_room_enough_nothing_goes(store: Any, uses: UseRecords, tmp_path: Path) -> None:
    store.add("localhost/x:1")
    assert (await Pruner(store, uses, tmp_path, 700, free=disk(store)).prune()).removed == ()


async def test_held_and_recent_images_stay(store: Any, uses: UseRecords, tmp_path: Path) -> None:
    held, recent, old = (store.add(f"localhost/{name}:1") for name in ("held", "recent", "old"))
    for image, ago in ((held, 5 * HOUR), (recent, 5.0), (old, HOUR)):
        used_ago(uses, tmp_path, image.digest, ago)
    pruner = Pruner(store, UseRecords(tmp_path / "uses"), tmp_path, low_water_bytes=10**9, free=disk(store))
    with uses.hold(held.digest), uses.hold(held.digest):
        used_ago(uses, tmp_path, held.digest, 5 * HOUR)
        report = await pruner.prune()
        assert [image.digest for image in report.removed] == [old.digest]
        everything = await pruner.prune(everything=True)
        assert [image.digest for image in everything.removed] == [recent.digest]
        assert [image.digest for image in everything.kept_in_use] == [held.digest]
    assert [image.digest for image in (await pruner.prune(everything=True)).removed] == [held.digest]


async def test_a_dry_run_only_tells(store: Any, uses: UseRecords, tmp_path: Path) -> None:
    store.add("localhost/x:1")
    report = await Pruner(store, uses, tmp_path, 10**9, free=disk(store)).prune(everything=True, dry_run=True)
    assert len(report.removed) == 1
    assert store.images


def test_a_use_is_refused_while_the_image_goes(uses: UseRecords, tmp_path: Path) -> None:
    digest = "sha256:" + "a" * 64
    with uses.removing(digest, 0.0) as free:
        assert free
        assert not UseRecords(tmp_path / "uses").note(digest)
    assert uses.note(digest)


async def test_the_catalogue_tells_where_images_came_from(store: Any, uses: UseRecords) -> None:
    built = store.add("localhost/seatrial:1", **{"seatrial.key": "k", "seatrial.task": "hello"})
    store.add("docker.io/library/debian:12", **{"seatrial.bootstrapped": "bookworm"})
    uses.note(built.digest)
    lines = await catalogue(store, uses)
    assert [(line.name, line.source, line.task) for line in lines] == [
        ("localhost/seatrial:1", "built", "hello"),
        ("debian:12", "bootstrapped", ""),
    ]
