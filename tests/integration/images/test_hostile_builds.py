"""A build runs as root on somebody else's behalf: what it must not reach, each with the twin that it may."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from seatrial.errors import ImageFault
from seatrial.sandboxes.images.assembly import Images, assemble, oci_images
from seatrial.sandboxes.images.build_network import build_network
from seatrial.sandboxes.images.buildah import BuildahStore
from seatrial.sandboxes.options import SandboxOptions
from seatrial.settings import tool_environment
from tests.host_processes import processes_with
from tests.image_cache import BASE, cold_cache
from tests.integration.images.counter import Counter
from tests.integration.images.looking import Write, read
from tests.waiting import eventually

pytestmark = pytest.mark.sandbox


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    """A process of the host, of the same user as the build."""
    process = subprocess.Popen(["sleep", "600.25"])
    yield process
    process.kill()
    process.wait()


async def test_a_build_kills_nobody_but_itself(
    images: Images, write: Write, bystander: subprocess.Popen[bytes]
) -> None:
    text = f"FROM debian:bookworm-slim\nRUN (kill -9 {bystander.pid} || true) && ls /proc > /seen && kill -9 -1"
    with pytest.raises(ImageFault):
        await images.resolver.resolve(write(text))
    assert bystander.poll() is None
    benign = write("FROM debian:bookworm-slim\nRUN sleep 600 & kill -9 $! && echo killed > /killed")
    assert read(await images.resolver.resolve(benign), "/killed") == "killed\n"


async def test_a_build_sees_no_process_of_the_host(
    images: Images, write: Write, bystander: subprocess.Popen[bytes]
) -> None:
    text = "FROM debian:bookworm-slim\nRUN cat /proc/[0-9]*/cmdline | tr '\\000' ' ' > /seen"
    seen = read(await images.resolver.resolve(write(text)), "/seen") or ""
    assert "cmdline" in seen
    assert "sleep 600.25" not in seen
    assert Path(f"/proc/{bystander.pid}/cmdline").read_text().split("\0")[:2] == ["sleep", "600.25"]


ESCAPES = {
    "chroot": "mkdir -p /x && chroot /x true",
    "mount": "mount -t tmpfs none /mnt",
    "device": "mknod /disk b 8 0",
    "host root by pid 1": "ls /proc/1/root/",
    "kernel settings": "echo x > /proc/sys/kernel/core_pattern",
    "cgroups": 'test -n "$(ls -A /sys/fs/cgroup)"',
    "disks": "test -n \"$(ls /dev | grep -E 'sd|vd|nvme|loop|mem|kmsg|fuse')\"",
    "sysfs": "echo 1 > /sys/kernel/mm/ksm/run",
}


@pytest.mark.parametrize("name", ESCAPES)
async def test_ways_out_are_closed(images: Images, write: Write, name: str) -> None:
    text = f"FROM debian:bookworm-slim\nRUN ({ESCAPES[name]}) 2>/tmp/why && echo open > /door || echo closed > /door"
    assert read(await images.resolver.resolve(write(text)), "/door") == "closed\n"


async def test_the_doors_that_builds_need_are_open(images: Images, write: Write) -> None:
    ways = [
        "useradd -m somebody",
        "chown somebody /srv",
        "su somebody -c id",
        "setpriv --reuid=1000 --clear-groups id",
        "echo x > /dev/null",
        "head -c 4 /dev/urandom",
        "test -e /dev/shm",
        "touch /dev/shm/x",
        "exec 3</dev/fd/0",
    ]
    text = "FROM debian:bookworm-slim\n" + "".join(f"RUN {way}\n" for way in ways)
    assert (await images.resolver.resolve(write(text))).source == "built"


async def test_services_of_this_machine_are_out_of_reach(
    images: Images, open_images: Images, write: Write, counter: Counter
) -> None:
    heard: list[str] = []
    text = f"FROM debian:bookworm-slim\nRUN {counter.tick} && echo open > /door || echo closed > /door"
    assert read(await images.resolver.resolve(write(text), heard.append), "/door") == "closed\n"
    assert counter.count == 0
    assert "Network of the build: public" in "".join(heard)
    heard.clear()
    assert read(await open_images.resolver.resolve(write(text), heard.append), "/door") == "open\n"
    assert counter.count == 1
    assert "the machine's own (the operator allows it)" in "".join(heard)


async def test_our_environment_stays_ours(warm: Path, write: Write) -> None:
    options = SandboxOptions(cache=warm, image_low_water_gb=0.0)
    environ = {**tool_environment(), "REGISTRY_AUTH_FILE": "/CANARY/auth.json", "http_proxy": "http://proxy.example:1"}
    images = assemble(
        BuildahStore(options.images_dir / "oci", environ, build_network(options, environ)), options, environ
    )
    text = "FROM debian:bookworm-slim\nRUN cat /proc/[0-9]*/environ 2>/dev/null | tr '\\000' '\\n' > /env; env >> /env"
    seen = read(await images.resolver.resolve(write(text)), "/env") or ""
    assert "http_proxy=http://proxy.example:1" in seen  # what builds need does come through
    assert "CANARY" not in seen
    assert not [line for line in seen.splitlines() if line.split("=")[0].endswith(("_API_KEY", "_TOKEN"))]


LINKS = {
    "COPY of an absolute link": "COPY absolute /got",
    "COPY of a link upwards": "COPY upwards /got",
    "COPY through a link to /": "COPY rootlink{canary} /got",
    "COPY of a path upwards": "COPY ../../../../../../../../../..{canary} /got",
    "ADD of an absolute link": "ADD absolute /got",
    "COPY --from through a link": "COPY --from=one /rootlink{canary} /got",
    "bind of a link to /": "RUN --mount=type=bind,source=rootlink,target=/b cp /b{canary} /got",
    "bind from a stage": "RUN --mount=type=bind,from=one,source=/rootlink,target=/b cp /b{canary} /got",
    "cache outside": "RUN --mount=type=cache,id=../../../../../../../../../../..{parent},target=/b cp /b/canary /got",
}


@pytest.mark.parametrize("name", LINKS)
async def test_links_lead_nowhere(images: Images, write: Write, tmp_path: Path, name: str) -> None:
    canary = tmp_path / "canary"
    canary.write_text("CANARY")
    line = LINKS[name].format(canary=canary, parent=tmp_path)
    stages = "FROM debian:bookworm-slim AS one\nRUN ln -s / /rootlink\nFROM debian:bookworm-slim\n"
    request = write(f"{stages}{line}\n", {"own.txt": "own"})
    folder = request.environment_dir
    (folder / "absolute").symlink_to(canary)
    (folder / "upwards").symlink_to("../" * 20 + str(canary).lstrip("/"))
    (folder / "rootlink").symlink_to("/")
    got: str | None = None
    try:
        got = read(await images.resolver.resolve(request), "/got")
    except ImageFault as fault:
        assert "CANARY" not in str(fault)
    assert got is None or "CANARY" not in got


async def test_links_inside_the_context_work(images: Images, write: Write) -> None:
    request = write("FROM debian:bookworm-slim\nCOPY link /got\nCOPY folder /folder\n", {"own.txt": "own"})
    folder = request.environment_dir
    (folder / "link").symlink_to("own.txt")
    (folder / "folder").mkdir()
    (folder / "folder" / "outwards").symlink_to("/etc/hostname")
    image = await images.resolver.resolve(request)
    assert read(image, "/got") == "own"
    assert (image.layers[0] / "folder" / "outwards").readlink() == Path("/etc/hostname")


@pytest.fixture(scope="module")
def own_options(warm: Path, tmp_path_factory: pytest.TempPathFactory) -> SandboxOptions:
    """A cache in which no other process of the run builds: what is left in it was left by the test's own builds."""
    images, options = cold_cache(warm, tmp_path_factory.mktemp("own-cache"))
    asyncio.run(images.bootstrap.make(BASE, images.store, lambda _: None))  # not within the time of a build
    return options


@pytest.fixture
def own_images(own_options: SandboxOptions) -> Images:
    return oci_images(own_options)


def leftovers(options: SandboxOptions) -> list[str]:
    oci = options.images_dir / "oci"
    containers = oci / "storage" / "overlay-containers" / "containers.json"
    text = containers.read_text().strip() if containers.exists() else ""
    scratch = [str(path) for path in (oci / "scratch").glob("*")]
    return scratch + ([text] if text not in ("", "[]", "null") else [])


SLOW = "FROM debian:bookworm-slim\nRUN setsid sleep {mark} >/dev/null 2>&1 & sleep {mark} & wait"


async def running(count: int, marker: str) -> None:
    await eventually(lambda: len(processes_with(marker)) == count, f"{count} processes with {marker!r}")


async def test_a_build_past_its_time_is_ended_with_all_it_started(
    own_images: Images, own_options: SandboxOptions, write: Write
) -> None:
    mark = "98761"
    waiting = asyncio.ensure_future(own_images.resolver.resolve(write(SLOW.format(mark=mark), build_timeout_sec=30)))
    await running(2, f"sleep\0{mark}")
    with pytest.raises(ImageFault, match="longer than 30 s"):
        await waiting
    await running(0, f"sleep\0{mark}")
    assert leftovers(own_options) == []


async def test_giving_up_ends_the_build_and_not_before(
    own_images: Images, own_options: SandboxOptions, write: Write
) -> None:
    mark = "98762"
    request = write(SLOW.format(mark=mark))
    waiting = [asyncio.ensure_future(own_images.resolver.resolve(request)) for _ in range(2)]
    await running(2, f"sleep\0{mark}")
    waiting[0].cancel()
    await asyncio.wait(waiting[:1])
    await own_images.store.list()  # whatever the one who left ended would be gone by now
    assert len(processes_with(f"sleep\0{mark}")) == 2
    waiting[1].cancel()
    await asyncio.wait(waiting)
    await running(0, f"sleep\0{mark}")
    assert leftovers(own_options) == []


BUILD = """\
import asyncio, pathlib, sys
from seatrial.sandboxes.images.image import ImageRequest
from seatrial.sandboxes.images.assembly import oci_images
from seatrial.sandboxes.options import SandboxOptions
images = oci_images(SandboxOptions(cache=pathlib.Path(sys.argv[1]), image_low_water_gb=0))
request = ImageRequest(task_name="a-task", environment_dir=pathlib.Path(sys.argv[2]))
asyncio.run(images.resolver.resolve(request, lambda text: print(text, flush=True)))
"""


async def test_a_killed_worker_s_build_dies_and_is_swept_up(
    own_images: Images, own_options: SandboxOptions, write: Write
) -> None:
    mark = "98763"
    request = write(SLOW.format(mark=mark))
    argv = [sys.executable, "-c", BUILD, str(own_options.cache), str(request.environment_dir)]
    worker = subprocess.Popen(argv, stdout=subprocess.DEVNULL)
    await running(2, f"sleep\0{mark}")
    worker.kill()
    worker.wait()
    await running(0, f"sleep\0{mark}")
    await running(0, str(own_options.cache))  # the builder, too: while it ends it may still write
    assert leftovers(own_options) != []
    text = "FROM debian:bookworm-slim\nRUN echo on > /on"
    assert read(await own_images.resolver.resolve(write(text)), "/on") == "on\n"
    assert leftovers(own_options) == []
