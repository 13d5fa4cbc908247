"""Agent kits: built once from a registry, whole or not at all, and run in images that have no runtime for them."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from seatrial.agents.kits.kit import digest_of
from seatrial.agents.kits.own_loader import KIT_DIR
from seatrial.agents.kits.shelf import KitShelf
from seatrial.errors import InvalidInput, SetupProblem
from tests.agent_kits import TINY_NODE, TINY_PYTHON, fill, put_into, shelf_of
from tests.package_registry import Registry, package_registry
from tests.waiting import LIMIT_SEC, until
from tests.workplace_fixture import Make, container_engine, image_cache, make, run_dir, workplace

__all__ = ["container_engine", "image_cache", "make", "run_dir", "workplace"]


@pytest.fixture(scope="module")
def registry() -> Iterator[Registry]:
    with package_registry() as registry:
        fill(registry)
        yield registry


@pytest.fixture(scope="module")
def shelf(registry: Registry, tmp_path_factory: pytest.TempPathFactory) -> KitShelf:
    return shelf_of(tmp_path_factory.mktemp("shelf") / "kits", registry)


@pytest.mark.parametrize("agent", [TINY_NODE.agent, TINY_PYTHON.agent])
async def test_an_agent_runs_in_an_image_without_its_runtime(make: Make, shelf: KitShelf, agent: str) -> None:
    """And finds itself: both start their own runtime again."""
    ready = await shelf.get(agent)
    sandbox = await make()
    assert (await sandbox.exec("command -v node || command -v python3")).return_code != 0
    fitted, harbors = await put_into(sandbox, ready)
    assert harbors.installed == 0 and harbors._version == "1.0.0" and fitted.notes == []
    answer = await sandbox.exec("LD_LIBRARY_PATH= tiny one 'two three'")
    assert answer.return_code == 0, answer.stderr
    said = json.loads(answer.stdout or "")
    assert said["agent"] == "tiny" and said["argv"] == ["one", "two three"]
    assert said.get("own", "2") == "2" and said.get("node", "v22").startswith("v22")
    mount = (await sandbox.exec(f"grep ' {KIT_DIR} ' /proc/mounts")).stdout or ""
    assert "ro," in mount.split()[3] + ","


def test_it_runs_on_a_root_with_nothing_but_a_shell(shelf: KitShelf, tmp_path: Path) -> None:
    """No C library at all, as in an image with another one."""
    for agent in (TINY_NODE.agent, TINY_PYTHON.agent):
        ready = asyncio.run(shelf.get(agent))
        root = tmp_path / agent
        (root / "bin").mkdir(parents=True)
        (root / "proc").mkdir()
        busybox = shutil.which("busybox")
        assert busybox, "busybox-static is needed"
        shutil.copy2(busybox, root / "bin" / "sh")
        place = root / str(KIT_DIR).lstrip("/")
        place.parent.mkdir(parents=True)
        shutil.copytree(ready.tree, place, symlinks=True)
        inside = f"mount -t proc proc {root}/proc && exec chroot {root} {KIT_DIR}/bin/tiny x"
        ran = subprocess.run(["unshare", "--mount", "sh", "-c", inside], capture_output=True, text=True)
        assert json.loads(ran.stdout)["argv"] == ["x"], ran.stderr


async def test_a_kit_is_built_once_however_many_ask(registry: Registry, tmp_path: Path) -> None:
    shelf, other = (shelf_of(tmp_path / "kits", registry) for _ in range(2))
    wheel = "/wheels/tiny_python_agent-1.0.0-py3-none-any.whl"
    before = registry.asked.count("/simple/tiny-python-agent/")
    asked = [each.get(TINY_PYTHON.agent, "1.0.0") for each in (shelf, other) for _ in range(5)]
    found = await asyncio.gather(*asked)
    assert len({ready.kit.made_at for ready in found}) == 1
    assert registry.asked.count("/simple/tiny-python-agent/") - before == 1
    assert wheel in registry.asked
    (listed,) = shelf.ready()
    assert listed.kit == found[0].kit and listed.used_at is not None
    assert listed.kit.digest == digest_of(listed.tree)
    assert listed.kit.libc.startswith("glibc-") and listed.kit.size_bytes > 10_000_000


async def test_latest_is_asked_for_once_and_stays_what_it_was(tmp_path: Path) -> None:
    with package_registry() as registry:
        fill(registry, "1.2.3")
        shelf = shelf_of(tmp_path / "kits", registry)
        assert (await shelf.get(TINY_PYTHON.agent)).kit.version == "1.2.3"
        fill(registry, "2.0.0")
        again = shelf_of(tmp_path / "kits", registry)
        assert (await again.get(TINY_PYTHON.agent, "latest")).kit.version == "1.2.3", "for some hours"
        with pytest.raises(SetupProblem, match=r"9\.9"):
            await again.get(TINY_PYTHON.agent, "9.9")
    note = tmp_path / "kits" / "tiny-python.latest"
    os.utime(note, (1, 1))
    away = shelf_of(tmp_path / "kits", registry)
    assert (await away.get(TINY_PYTHON.agent)).kit.version == "1.2.3", "without a registry, what is here"
    with pytest.raises(InvalidInput, match="no kit"):
        await away.get("terminus-2")


async def test_a_damaged_kit_is_built_again(registry: Registry, tmp_path: Path) -> None:
    first = await shelf_of(tmp_path / "kits", registry).get(TINY_PYTHON.agent, "1.0.0")
    (first.tree / "bin" / "tiny").write_text("#!/bin/sh\necho changed\n")
    again = await shelf_of(tmp_path / "kits", registry).get(TINY_PYTHON.agent, "1.0.0")
    assert again.kit.digest == first.kit.digest == digest_of(again.tree), "and has the same content"


_PATIENCE_SEC = 500.0
BUILD = """
import asyncio, sys
from pathlib import Path
from tests.agent_kits import shelf_of
from tests.package_registry import Registry
asyncio.run(shelf_of(Path(sys.argv[1]), Registry(sys.argv[2])).get("tiny-python", "1.0.0"))
"""


async def test_a_killed_build_leaves_no_kit_and_the_next_one_is_whole(tmp_path: Path) -> None:
    kits = tmp_path / "kits"
    with package_registry() as registry:
        fill(registry)
        registry.sends.clear()
        process = subprocess.Popen([sys.executable, "-c", BUILD, str(kits), registry.url], start_new_session=True)
        try:
            begun = lambda: any(path.startswith("/wheels/") for path in registry.asked)  # noqa: E731
            await asyncio.to_thread(until, begun, "the build asked for its package", _PATIENCE_SEC)
            assert any(kits.glob(".making-*/kit/tree/lib/*")), "it is half done"
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(LIMIT_SEC)
            registry.sends.set()
        shelf = shelf_of(kits, registry)
        assert shelf.ready() == []
        ready = await shelf.get(TINY_PYTHON.agent, "1.0.0")
    assert digest_of(ready.tree) == ready.kit.digest
    assert list(kits.glob(".making-*")) == [], "what the killed one left is gone"


async def test_the_least_recently_used_go_and_those_in_use_stay(tmp_path: Path) -> None:
    with package_registry() as registry:
        fill(registry, "1.0.0")
        fill(registry, "2.0.0")
        roomy = shelf_of(tmp_path / "kits", registry)
        old = await roomy.get(TINY_PYTHON.agent, "1.0.0")
        new = await roomy.get(TINY_PYTHON.agent, "2.0.0")
    for ready, time in ((old, 1000), (new, 2000)):
        os.utime(tmp_path / "kits" / "uses" / ready.name, (time, time))
    tight = shelf_of(tmp_path / "kits", registry, limit_bytes=new.kit.size_bytes + 1)
    with roomy.hold(old):
        assert [ready.kit.version for ready in await tight.prune(dry_run=True)] == ["2.0.0"]
    os.utime(tmp_path / "kits" / "uses" / old.name, (1000, 1000))
    assert [ready.kit.version for ready in await tight.prune()] == ["1.0.0"]
    assert [ready.kit.version for ready in tight.ready()] == ["2.0.0"]
    with roomy.hold(new):
        assert await tight.prune(everything=True) == []
    assert len(await tight.prune(everything=True)) == 1 and tight.ready() == []
