"""A hole in the builder is not a hole in the host: hostile Dockerfiles go straight to the builder, past the reader."""

from __future__ import annotations

import asyncio
import io
import os
import random
import tarfile
import uuid
from pathlib import Path

import pytest

from seatrial.errors import ImageFault
from seatrial.sandboxes.images.assembly import Images, oci_images
from seatrial.sandboxes.images.image import BuildPlan, Image
from seatrial.sandboxes.options import SandboxOptions
from tests.attacks.task_author.processors import allowed_processors, started
from tests.integration.images.looking import Write, read

pytestmark = pytest.mark.sandbox

BASE = "docker.io/library/debian:bookworm-slim"
TWO_STAGES = f"FROM {BASE} AS base\nRUN ln -s / /rootdir && mkdir /folder && echo own > /folder/own\nFROM {BASE}\n"


async def build_unguarded(images: Images, folder: Path, dockerfile: str, **asked: float) -> tuple[Image | None, str]:
    """What the builder makes of a text that nobody read before; its words where it fails."""
    context = folder / "context"
    context.mkdir(exist_ok=True)
    (folder / "Dockerfile").write_text(dockerfile)
    plan = BuildPlan(
        reference=f"localhost/unguarded:{uuid.uuid4().hex}",
        context_dir=context,
        dockerfile=folder / "Dockerfile",
        **asked,  # type: ignore[arg-type]
    )
    heard: list[str] = []
    try:
        return await images.store.build(plan, heard.append), "".join(heard)
    except ImageFault as fault:
        return None, f"{''.join(heard)}\n{fault}"


def bind(options: str, command: str) -> str:
    return f"{TWO_STAGES}RUN --mount=type=bind,from=base,{options},target=/x {command}\n"


WRITES = {
    "bind of a link to the root": bind("source=/rootdir,rw", "touch /x/{name}"),
    "bind of a link with propagation": bind("source=/rootdir,rw,bind-propagation=rshared", "touch /x/{name}"),
    "bind in quotes": bind("source=/rootdir,rw", "touch /x/{name}").replace("--mount", '--"mount"'),
    "cache with a path upwards": (
        f"FROM {BASE}\nRUN --mount=type=cache,id=../../../../../../../../../../../..,target=/x touch /x/{{name}}\n"
    ),
    "cache from a stage, through a link": (
        f"{TWO_STAGES}RUN --mount=type=cache,from=base,source=/rootdir,target=/x touch /x/{{name}}\n"
    ),
    "trigger of the same build": (
        f"FROM {BASE} AS base\nRUN ln -s / /rootdir\n"
        f"ONBUILD RUN --mount=type=bind,from=0,source=/rootdir,target=/x,rw touch /x/{{name}}\nFROM base\n"
    ),
    "working directory through a link": f"FROM {BASE}\nRUN ln -s /../../../../../.. /up\nWORKDIR /up/{{name}}\n",
    "copy through a link": f"FROM {BASE}\nRUN ln -s /../../../.. /up && echo > /f\nCOPY --from=0 /f /up/{{name}}\n",
}


@pytest.mark.parametrize("name", WRITES)
async def test_the_host_s_root_cannot_be_written(images: Images, tmp_path: Path, name: str) -> None:
    mark = f"seatrial-attack-{uuid.uuid4().hex}"
    try:
        await build_unguarded(images, tmp_path, WRITES[name].format(name=mark))
        assert not Path("/", mark).exists()
    finally:
        Path("/", mark).unlink(missing_ok=True) if Path("/", mark).is_file() else None


READS = {
    "bind of a link to the root": bind("source=/rootdir", "sh -c 'cat /x{canary} > /got'"),
    "bind of a path upwards": bind("source=/../../../../../../..", "sh -c 'cat /x{canary} > /got'"),
    "copy from a stage, through a link": f"{TWO_STAGES}COPY --from=base /rootdir{{canary}} /got\n",
    "secret by its path": f"FROM {BASE}\nRUN --mount=type=secret,id=s,src={{canary}},target=/s cat /s > /got\n",
}


@pytest.mark.parametrize("name", READS)
async def test_files_of_the_host_cannot_be_read(images: Images, tmp_path: Path, name: str) -> None:
    canary = tmp_path / "canary"
    canary.write_text("CANARY")
    image, said = await build_unguarded(images, tmp_path, READS[name].format(canary=canary))
    assert "CANARY" not in said
    assert image is None or "CANARY" not in (read(image, "/got") or "")


async def test_a_bind_of_a_folder_works_in_the_builder(images: Images, tmp_path: Path) -> None:
    """The twin: the builder does carry such mounts out, so the attacks fail by what is around it."""
    text = bind("source=/folder", "cp /x/own /got")
    image, said = await build_unguarded(images, tmp_path, text)
    assert image is not None, said
    assert read(image, "/got") == "own\n"


async def test_the_builder_sees_nothing_of_the_host(images: Images, tmp_path: Path) -> None:
    """The root that a hole in the builder leads to: no users, no homes, no other programs."""
    text = bind("source=/rootdir", "sh -c 'ls / > /own; ls -a /x > /seen; cat /x/etc/passwd > /users'")
    image, said = await build_unguarded(images, tmp_path, text)
    if image is None:  # a newer builder does not follow the link at all
        assert "rootdir" in said
        return
    seen = (read(image, "/seen") or "").split()
    assert not {"home", "srv", "opt", "boot", "work", "mnt"} & (set(seen) - set((read(image, "/own") or "").split()))
    users = read(image, "/users") or ""
    assert Path("/etc/passwd").read_text() != users


def tar_with(kind: bytes) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        node = tarfile.TarInfo("disk")
        node.type, node.devmajor, node.devminor, node.mode = kind, 254, 0, 0o666
        archive.addfile(node)
        plain = tarfile.TarInfo("plain")
        plain.size = 6
        archive.addfile(plain, io.BytesIO(b"plain\n"))
    return made.getvalue()


@pytest.mark.parametrize("kind", [tarfile.BLKTYPE, tarfile.CHRTYPE])
async def test_no_device_node_gets_into_an_image(images: Images, write: Write, kind: bytes) -> None:
    request = write("FROM debian:bookworm-slim\nADD nodes.tar /tests/\n")
    (request.environment_dir / "nodes.tar").write_bytes(tar_with(kind))
    try:
        image = await images.resolver.resolve(request)
    except ImageFault:
        return
    assert not any(os.path.lexists(layer / "tests" / "disk") for layer in image.layers)


async def test_a_tar_without_nodes_is_unpacked(images: Images, write: Write) -> None:
    request = write("FROM debian:bookworm-slim\nADD plain.tar /tests/\n")
    (request.environment_dir / "plain.tar").write_bytes(tar_with(tarfile.DIRTYPE))
    assert read(await images.resolver.resolve(request), "/tests/plain") == "plain\n"


def limited(options: SandboxOptions, **limits: object) -> Images:
    return oci_images(options.model_copy(update=limits))


async def test_a_build_fills_no_more_than_its_disk(options: SandboxOptions, write: Write) -> None:
    images = limited(options, max_build_disk_mb=300)
    # Unlinked while it is open: no count of files would find it.
    text = "FROM debian:bookworm-slim\nRUN exec 3>/hole && rm /hole && head -c 600000000 /dev/zero >&3\n"
    heard: list[str] = []
    with pytest.raises(ImageFault):
        await images.resolver.resolve(write(text), heard.append)
    assert "No space left on device" in "".join(heard)
    benign = "FROM debian:bookworm-slim\nRUN head -c 60000000 /dev/zero > /some\n"
    assert (await images.resolver.resolve(write(benign))).source == "built"


async def test_a_build_has_no_more_memory_and_processes_than_allowed(options: SandboxOptions, write: Write) -> None:
    images = limited(options, max_build_memory_mb=200, max_build_pids=60)
    with pytest.raises(ImageFault):
        await images.resolver.resolve(write("FROM debian:bookworm-slim\nRUN head -c 500m /dev/zero | tail\n"))
    many = "FROM debian:bookworm-slim\nRUN for i in $(seq {}); do sleep 300 & done\n"
    heard: list[str] = []
    with pytest.raises(ImageFault):
        await images.resolver.resolve(write(many.format(200)), heard.append)
    assert "exit status 2" in "".join(heard), "what the shell says when it cannot fork; its words may get lost"
    assert await images.resolver.resolve(write(many.format(10)))
    assert await images.resolver.resolve(write("FROM debian:bookworm-slim\nRUN head -c 50m /dev/zero | tail -c 1\n"))


async def test_the_operator_caps_the_time_of_a_build(options: SandboxOptions, write: Write) -> None:
    images = limited(options, max_build_sec=5.0)
    request = write("FROM debian:bookworm-slim\nRUN sleep 500\n", build_timeout_sec=100_000)
    with pytest.raises(ImageFault, match="longer than 5 s"):
        await images.resolver.resolve(request)


@pytest.mark.parametrize(("cap", "allowed"), [(0.5, 0.5), (0.0, float(os.cpu_count() or 1))])
async def test_a_build_has_no_more_processors_than_allowed(
    options: SandboxOptions, write: Write, cap: float, allowed: float
) -> None:
    """Without a cap of the operator a build has all of them."""
    token = str(random.randrange(10**8, 10**9))
    request = write(f"FROM debian:bookworm-slim\nRUN sleep {token}\n")
    building = asyncio.create_task(limited(options, max_build_cpus=cap).resolver.resolve(request))
    try:
        assert allowed_processors(await started(token)) == pytest.approx(allowed)
    finally:
        building.cancel()
        await asyncio.gather(building, return_exceptions=True)
