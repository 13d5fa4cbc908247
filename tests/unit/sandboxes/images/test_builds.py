"""Each distinct environment is built once, however many ask; failures reach everyone and are not kept."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from seatrial.errors import ImageFault
from seatrial.sandboxes.images.assembly import Images, assemble
from seatrial.sandboxes.images.build_network import MachineNetwork
from seatrial.sandboxes.images.buildah import BuildahStore
from seatrial.sandboxes.images.builder import kept_log
from seatrial.sandboxes.images.image import ImageRequest
from seatrial.sandboxes.options import SandboxOptions
from tests.waiting import LIMIT_SEC, eventually

DEBIAN = "docker.io/library/debian:bookworm-slim"


@pytest.fixture(autouse=True)
def base(store: Any) -> Any:
    return store.add(DEBIAN)


def request(environment: Path, **asked: Any) -> ImageRequest:
    return ImageRequest(task_name="hello", environment_dir=environment, **asked)


async def test_many_at_once_are_one_build(store: Any, images: Images, environment: Path) -> None:
    store.build_sec = 0.1
    found = await asyncio.gather(*(images.resolver.resolve(request(environment)) for _ in range(100)))
    assert store.calls.count("build") == 1
    assert len({image.digest for image in found}) == 1


async def test_two_processes_are_one_build(store: Any, options: SandboxOptions, environment: Path) -> None:
    """Two resolvers share nothing but the cache's lock files (and here the store), as two processes do."""
    store.build_sec = 0.1
    both = [assemble(store, options, environ={}) for _ in range(2)]
    await asyncio.gather(*(one.resolver.resolve(request(environment)) for one in both))
    assert store.calls.count("build") == 1


async def test_two_tasks_with_the_same_environment_are_one_image(
    store: Any, images: Images, environment: Path, tmp_path: Path
) -> None:
    twin = tmp_path / "other" / "environment"
    twin.mkdir(parents=True)
    for path in environment.iterdir():
        (twin / path.name).write_bytes(path.read_bytes())
    first = await images.resolver.resolve(request(environment))
    second = await images.resolver.resolve(ImageRequest(task_name="other", environment_dir=twin))
    assert first.digest == second.digest
    assert store.calls.count("build") == 1


@pytest.mark.parametrize("change", ["content", "mode", "dockerfile", "name", "link", "argument", "base"])
async def test_every_change_that_matters_is_another_build(
    store: Any, images: Images, environment: Path, change: str
) -> None:
    await images.resolver.resolve(request(environment))
    data, asked = environment / "data.txt", {}
    match change:
        case "content":
            data.write_text("DATA\n")
        case "mode":
            data.chmod(0o755)
        case "dockerfile":
            (environment / "Dockerfile").write_text("FROM debian:bookworm-slim\nRUN true\n")
        case "name":
            data.rename(environment / "renamed.txt")
        case "link":
            (environment / "link").symlink_to("data.txt")
        case "argument":
            asked = {"build_args": {"A": "1"}}
        case "base":
            store.calls.append("a newer one")
            store.add(DEBIAN)
    await images.resolver.resolve(request(environment, **asked))
    assert store.calls.count("build") == 2


@pytest.mark.parametrize("change", ["time", "ignored", "nothing"])
async def test_what_does_not_matter_is_no_build(store: Any, images: Images, environment: Path, change: str) -> None:
    (environment / ".dockerignore").write_text("*.log\n")
    await images.resolver.resolve(request(environment))
    if change == "time":
        os.utime(environment / "data.txt", (1, 1))
    elif change == "ignored":
        (environment / "big.log").write_text("x")
    image = await images.resolver.resolve(request(environment))
    assert store.calls.count("build") == 1
    assert image.source == "built"


async def test_a_failure_reaches_everyone_and_the_next_try_builds_again(
    store: Any, images: Images, environment: Path
) -> None:
    store.build_sec, store.build_problem = 0.05, "exit status 3"
    ended = await asyncio.gather(
        *(images.resolver.resolve(request(environment)) for _ in range(10)), return_exceptions=True
    )
    assert all(isinstance(error, ImageFault) and "exit status 3" in str(error) for error in ended)
    assert len({id(error) for error in ended}) == 10
    assert store.calls.count("build") == 1
    store.build_problem = ""
    assert (await images.resolver.resolve(request(environment))).source == "built"


async def test_cancelling_one_of_many_leaves_the_build_alone(store: Any, images: Images, environment: Path) -> None:
    store.may_build.clear()
    waiting = [asyncio.ensure_future(images.resolver.resolve(request(environment))) for _ in range(3)]
    await eventually(lambda: "build" in store.calls, "the build began")
    waiting[0].cancel()
    await asyncio.wait(waiting[:1])
    store.may_build.set()
    rest = await asyncio.gather(*waiting[1:])
    assert waiting[0].cancelled()
    assert len(rest) == 2
    assert store.calls.count("build") == store.calls.count("built") == 1


async def test_cancelling_the_last_one_ends_the_build(store: Any, images: Images, environment: Path) -> None:
    store.may_build.clear()
    waiting = [asyncio.ensure_future(images.resolver.resolve(request(environment))) for _ in range(3)]
    await eventually(lambda: "build" in store.calls, "the build began")
    for task in waiting:
        task.cancel()
    await asyncio.wait(waiting, timeout=LIMIT_SEC)
    assert all(task.cancelled() for task in waiting)
    assert store.calls.count("built") == 0
    store.may_build.set()
    await asyncio.wait_for(images.resolver.resolve(request(environment)), LIMIT_SEC)
    assert store.calls.count("built") == 1


async def test_logs_are_streamed_and_kept(store: Any, images: Images, environment: Path) -> None:
    heard: list[str] = []
    image = await images.resolver.resolve(request(environment), heard.append)
    assert image.build_log is not None
    assert "STEP 1" in "".join(heard)
    assert "STEP 1" in image.build_log.read_text()
    again = await images.resolver.resolve(request(environment))
    assert again.build_log == image.build_log


async def test_a_listener_who_fails_ends_nobody_s_build(store: Any, images: Images, environment: Path) -> None:
    def deaf(_: str) -> None:
        raise BrokenPipeError

    heard: list[str] = []
    store.build_sec = 0.05
    both = (images.resolver.resolve(request(environment), sink) for sink in (deaf, heard.append))
    assert [image.source for image in await asyncio.gather(*both)] == ["built", "built"]
    assert "STEP 1" in "".join(heard)


@pytest.mark.parametrize("platform", ["linux/s390x", "windows/amd64"])
async def test_what_this_machine_cannot_build_is_an_image_fault(
    store: Any, images: Images, environment: Path, platform: str
) -> None:
    (environment / "Dockerfile").write_text(f"FROM --platform={platform} debian:bookworm-slim\n")
    with pytest.raises(ImageFault, match=platform):
        await images.resolver.resolve(request(environment))
    (environment / "Dockerfile").write_text("FROM --platform=$BUILDPLATFORM debian:bookworm-slim\n")
    assert (await images.resolver.resolve(request(environment))).source == "built"


async def test_a_missing_tool_is_told_with_the_command_that_brings_it(
    options: SandboxOptions, environment: Path, tmp_path: Path
) -> None:
    nothing = {"PATH": str(tmp_path)}
    store = BuildahStore(options.images_dir / "oci", nothing, MachineNetwork("test"))
    (options.images_dir / "oci").mkdir(parents=True)
    (options.images_dir / "oci" / "driver").write_text("vfs")
    images = assemble(store, options, environ=nothing)
    with pytest.raises(ImageFault, match=r"buildah is not installed\. apt-get install buildah"):
        await images.resolver.resolve(request(environment))


async def test_one_pinned_image_of_many_tasks_is_pulled_once(store: Any, images: Images, tmp_path: Path) -> None:
    store.registry.add("docker.io/owner/shared:1")
    wanted = (
        ImageRequest(task_name=f"task-{number}", environment_dir=tmp_path, docker_image="owner/shared:1")
        for number in range(10)
    )
    await asyncio.gather(*(images.resolver.resolve(one) for one in wanted))
    assert store.calls == ["pull docker.io/owner/shared:1"]


def test_a_log_without_end_is_cut(tmp_path: Path) -> None:
    heard: list[str] = []
    with kept_log(tmp_path / "log", heard.append, limit=100) as sink:
        for _ in range(50):
            sink("0123456789")
    text = (tmp_path / "log").read_text()
    assert text.startswith("0123456789" * 10)
    assert "more than 100" in text
    assert len(text) < 250
    assert "".join(heard) == text


async def test_the_builder_gets_a_clean_copy(store: Any, images: Images, environment: Path) -> None:
    (environment / ".dockerignore").write_text("secret*\n")
    (environment / "secret.key").write_text("k")
    seen: list[set[str]] = []

    async def look(plan: Any, log: Any, build: Any = store.build) -> Any:
        seen.append({path.relative_to(plan.context_dir).as_posix() for path in plan.context_dir.rglob("*")})
        assert not plan.dockerfile.is_relative_to(plan.context_dir)
        return await build(plan, log)

    store.build = look
    await images.resolver.resolve(request(environment))
    assert seen == [{"Dockerfile", "data.txt", ".dockerignore"}]
    assert not list((environment.parents[1] / "cache" / "images" / "staging").iterdir())


@pytest.mark.parametrize("what", ["dockerfile", "ignore", "fifo", "environment", "depth", "carriage return"])
async def test_links_out_of_the_task_and_odd_files_are_refused(
    store: Any, images: Images, environment: Path, tmp_path: Path, what: str
) -> None:
    canary = tmp_path / "outside"
    canary.write_text("CANARY\n")
    where = environment
    match what:
        case "dockerfile":
            (environment / "Dockerfile").unlink()
            (environment / "Dockerfile").symlink_to(canary)
        case "ignore":
            (environment / ".dockerignore").symlink_to(canary)
        case "fifo":
            os.mkfifo(environment / "pipe")
        case "depth":
            (environment / "/".join("d" * 150)).mkdir(parents=True)
        case "carriage return":
            (environment / "Dockerfile").write_bytes(b"FROM debian:bookworm-slim\nRUN true\rRUN false\n")
        case "environment":
            (tmp_path / "hostile").mkdir()
            where = tmp_path / "hostile" / "environment"
            where.symlink_to(environment)
    with pytest.raises(ImageFault) as caught:
        await images.resolver.resolve(request(where))
    assert "CANARY" not in str(caught.value)
    assert "build" not in store.calls


async def test_a_task_s_name_is_no_part_of_the_dockerfile(store: Any, images: Images, environment: Path) -> None:
    """The builder writes labels into its own Dockerfile."""
    await images.resolver.resolve(ImageRequest(task_name='x" \nRUN --mount=y $z `w`', environment_dir=environment))
    assert store.plans[-1].labels["seatrial.task"] == "x_ _RUN --mount_y _z _w_"
    (environment / "data.txt").write_text("other\n")
    await images.resolver.resolve(ImageRequest(task_name="org/hello-world_2.0", environment_dir=environment))
    assert store.plans[-1].labels["seatrial.task"] == "org/hello-world_2.0"


async def test_links_inside_the_task_are_fine(store: Any, images: Images, environment: Path) -> None:
    (environment / "Dockerfile").rename(environment / "Dockerfile.real")
    (environment / "Dockerfile").symlink_to("Dockerfile.real")
    (environment / "/".join("d" * 50)).mkdir(parents=True)
    (environment / "anywhere").symlink_to("/etc/hostname")  # stays a link; nobody follows it
    assert (await images.resolver.resolve(request(environment))).source == "built"
