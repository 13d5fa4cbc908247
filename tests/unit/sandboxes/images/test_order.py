"""The order of the contract: what is looked for, where, and what happens when it cannot be had."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from seatrial.errors import ImageFault
from seatrial.sandboxes.images.assembly import Images, assemble
from seatrial.sandboxes.images.image import LABEL_BOOTSTRAPPED, ImageRequest
from seatrial.sandboxes.options import SandboxOptions

DEBIAN = "docker.io/library/debian:bookworm-slim"
PINNED = "docker.io/alexgshaw/hello:20251031"
MAPPED = "reg.example/tb:hello-20251031"
DEFAULT = "reg.example/all:hello"


def with_options(store: Any, options: SandboxOptions, **changes: Any) -> Images:
    return assemble(store, options.model_copy(update=changes), environ={})


def request(environment: Path, **asked: Any) -> ImageRequest:
    return ImageRequest(task_name="hello", environment_dir=environment, **asked)


async def test_pinned_without_a_registry_is_pulled_then_local(store: Any, images: Images, environment: Path) -> None:
    store.registry.add(PINNED)
    wanted = request(environment, docker_image="alexgshaw/hello:20251031")
    assert (await images.resolver.resolve(wanted)).source == "pulled"
    again = await images.resolver.resolve(wanted)
    assert (again.source, again.reference) == ("local", PINNED)
    assert store.calls == [f"pull {PINNED}"]


async def test_the_mapped_private_image_comes_first(store: Any, options: SandboxOptions, environment: Path) -> None:
    store.registry |= {PINNED, MAPPED}
    images = with_options(store, options, docker_registry="reg.example/tb")
    wanted = request(environment, docker_image="alexgshaw/hello:20251031")
    assert (await images.resolver.resolve(wanted)).reference == MAPPED
    assert store.calls == [f"pull {MAPPED}"]


async def test_then_the_image_itself(store: Any, options: SandboxOptions, environment: Path) -> None:
    store.registry.add(PINNED)
    images = with_options(store, options, docker_registry="reg.example/tb")
    wanted = request(environment, docker_image="alexgshaw/hello:20251031")
    assert (await images.resolver.resolve(wanted)).reference == PINNED
    assert store.calls == [f"pull {MAPPED}", f"pull {PINNED}"]


async def test_what_is_here_beats_what_would_be_pulled(store: Any, options: SandboxOptions, environment: Path) -> None:
    store.registry |= {PINNED, MAPPED}
    store.add(PINNED)
    images = with_options(store, options, docker_registry="reg.example/tb")
    image = await images.resolver.resolve(request(environment, docker_image="alexgshaw/hello:20251031"))
    assert (image.reference, image.source) == (PINNED, "local")
    assert store.calls == []


async def test_no_pull_fails_at_once_with_name_and_command(
    store: Any, options: SandboxOptions, environment: Path
) -> None:
    store.registry |= {PINNED, MAPPED}
    images = with_options(store, options, docker_registry="reg.example/tb", pull_if_not_exists=False)
    with pytest.raises(ImageFault, match=r"alexgshaw/hello:20251031 .*pull alexgshaw/hello:20251031"):
        await images.resolver.resolve(request(environment, docker_image="alexgshaw/hello:20251031"))
    assert store.calls == []
    store.add(MAPPED)  # the twin: it is here, so nothing has to be pulled
    image = await images.resolver.resolve(request(environment, docker_image="alexgshaw/hello:20251031"))
    assert image.reference == MAPPED


async def test_a_pinned_image_that_cannot_be_had_is_not_replaced_by_a_build(
    store: Any, images: Images, environment: Path
) -> None:
    store.add(DEBIAN)
    with pytest.raises(ImageFault, match="--force-build"):
        await images.resolver.resolve(request(environment, docker_image="alexgshaw/hello:20251031"))
    assert "build" not in store.calls
    forced = await images.resolver.resolve(
        request(environment, docker_image="alexgshaw/hello:20251031", force_build=True)
    )
    assert forced.source == "forced build"
    assert store.calls.count("build") == 1


async def test_forcing_a_build_where_nothing_is_pinned_is_just_a_build(
    store: Any, images: Images, environment: Path
) -> None:
    store.add(DEBIAN)
    assert (await images.resolver.resolve(request(environment, force_build=True))).source == "built"


async def test_without_a_pin_the_default_registry_comes_first(
    store: Any, options: SandboxOptions, environment: Path
) -> None:
    store.registry.add(DEFAULT)
    images = with_options(store, options, default_registry="reg.example/all", docker_registry="reg.example/tb")
    assert (await images.resolver.resolve(request(environment))).reference == DEFAULT
    assert store.calls == [f"pull {DEFAULT}"]


async def test_and_then_a_build(store: Any, options: SandboxOptions, environment: Path) -> None:
    store.add(DEBIAN)
    images = with_options(store, options, default_registry="reg.example/all")
    heard: list[str] = []
    image = await images.resolver.resolve(request(environment), heard.append)
    assert image.source == "built"
    assert store.calls == [f"pull {DEFAULT}", "build", "built"]
    assert "Building it from the Dockerfile" in "".join(heard)


async def test_no_default_registry_means_nobody_is_asked(store: Any, images: Images, environment: Path) -> None:
    store.add(DEBIAN)
    await images.resolver.resolve(request(environment))
    assert store.calls == ["build", "built"]


async def test_a_base_that_nobody_has_is_named(store: Any, images: Images, environment: Path) -> None:
    store.answers = False
    (environment / "Dockerfile").write_text("FROM python:3.12\n")
    with pytest.raises(ImageFault, match=r"python:3\.12"):
        await images.resolver.resolve(request(environment))
    assert store.calls == ["pull docker.io/library/python:3.12"]


@pytest.mark.parametrize("base", ["ubuntu:24.04", "python:3.12-bookworm", "ghcr.io/library/debian:12", "debian:x-y"])
async def test_debian_never_stands_in_for_something_else(
    store: Any, images: Images, environment: Path, base: str
) -> None:
    store.answers = False
    (environment / "Dockerfile").write_text(f"FROM {base}\n")
    with pytest.raises(ImageFault):
        await images.resolver.resolve(request(environment))
    assert not any(call.startswith("load") for call in store.calls)
    assert not images.bootstrap.can_make(base)
    assert images.bootstrap.can_make("debian:12-slim")


async def test_a_silent_registry_is_asked_once_in_a_while(store: Any, images: Images, environment: Path) -> None:
    store.answers = False
    for number in range(5):
        (environment / "Dockerfile").write_text(f"FROM python:3.{number}\n")
        with pytest.raises(ImageFault):
            await images.resolver.resolve(request(environment))
    assert len(store.calls) == 1


async def test_a_registry_that_says_no_is_asked_again(store: Any, images: Images, environment: Path) -> None:
    for number in range(3):
        with pytest.raises(ImageFault):
            await images.resolver.resolve(request(environment, docker_image=f"missing:{number}"))
    assert len(store.calls) == 3


async def test_what_a_build_stands_on_is_told(store: Any, images: Images, environment: Path) -> None:
    base = store.add(DEBIAN, **{LABEL_BOOTSTRAPPED: "bookworm-slim"})
    image = await images.resolver.resolve(request(environment))
    assert [(found.reference, found.digest, found.source) for found in image.bases] == [
        (DEBIAN, base.digest, "bootstrapped")
    ]
    assert image.provenance == "built (bootstrapped base: debian:bookworm-slim)"


async def test_a_pinned_debian_that_was_bootstrapped_says_so(store: Any, images: Images, environment: Path) -> None:
    store.add(DEBIAN, **{LABEL_BOOTSTRAPPED: "bookworm-slim"})
    image = await images.resolver.resolve(request(environment, docker_image="debian:bookworm-slim"))
    assert image.source == "bootstrapped"
