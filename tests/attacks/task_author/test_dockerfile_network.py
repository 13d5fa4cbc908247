"""What a build, a ``FROM`` and an ``ADD`` can talk to: nothing of this machine, and nobody with the operator's name."""

from __future__ import annotations

import base64
import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from seatrial.errors import ImageFault
from seatrial.sandboxes.images.assembly import Images, assemble, build_limits
from seatrial.sandboxes.images.batch import Publisher
from seatrial.sandboxes.images.build_network import BuildLine, MachineNetwork, RoutedBuilds, build_network
from seatrial.sandboxes.images.buildah import BuildahStore
from seatrial.sandboxes.images.registries import Registries
from seatrial.sandboxes.options import SandboxOptions
from seatrial.settings import tool_environment
from tests.integration.images.counter import Counter
from tests.integration.images.looking import Write, read
from tests.integration.images.registry import Registry
from tests.waiting import LIMIT_SEC

sandbox = pytest.mark.sandbox
DOOR = "FROM debian:bookworm-slim\nRUN ({command}) && echo open > /door || echo closed > /door\n"


def images_with(options: SandboxOptions, **environ: str) -> Images:
    env = {**tool_environment(), **environ}
    store = BuildahStore(options.images_dir / "oci", env, build_network(options, env), build_limits(options))
    return assemble(store, options, env)


@sandbox
@pytest.mark.parametrize("name", ["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"])
async def test_a_proxy_opens_no_way_to_this_machine(
    options: SandboxOptions, write: Write, counter: Counter, name: str
) -> None:
    images = images_with(options, **{name: "http://127.0.0.1:3128"})
    image = await images.resolver.resolve(write(DOOR.format(command=counter.tick)))
    assert read(image, "/door") == "closed\n"
    assert counter.count == 0


@sandbox
async def test_the_operator_may_open_it(options: SandboxOptions, write: Write, counter: Counter) -> None:
    allowed = options.model_copy(update={"allow_host_network_builds": True})
    images = images_with(allowed, http_proxy="http://127.0.0.1:3128")
    assert read(await images.resolver.resolve(write(DOOR.format(command=counter.tick))), "/door") == "open\n"
    assert counter.count == 1


@sandbox
async def test_without_a_router_a_build_has_no_network(
    options: SandboxOptions, write: Write, counter: Counter, tmp_path: Path
) -> None:
    """A machine without nft: no namespace of its own can be made."""
    heard: list[str] = []
    network = RoutedBuilds(options.model_copy(update={"private_destinations": "not-an-address"}))
    store = BuildahStore(options.images_dir / "oci", tool_environment(), network, build_limits(options))
    images = assemble(store, options)
    image = await images.resolver.resolve(write(DOOR.format(command=counter.tick)), heard.append)
    assert read(image, "/door") == "closed\n"
    assert counter.count == 0
    assert "Network of the build: none" in "".join(heard)
    assert "SEATRIAL_ALLOW_HOST_NETWORK_BUILDS" in "".join(heard)


@sandbox
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "0.0.0.0"])
async def test_add_fetches_nothing_of_this_machine(images: Images, write: Write, host: str) -> None:
    with Registry() as served:
        port = served.address.rpartition(":")[2]
        with pytest.raises(ImageFault):
            await images.resolver.resolve(write(f"FROM debian:bookworm-slim\nADD http://{host}:{port}/v2/ /got\n"))
        assert served.asked == []


def test_no_line_is_no_network() -> None:
    assert not BuildLine(description="none").connected
    assert BuildLine(description="own", machine=True).connected


PRIVATE = (
    *("127.0.0.1:5000", "localhost:5000", "sub.localhost:5000", "[::1]:5000", "10.1.2.3", "192.168.1.1:443"),
    *("169.254.169.254", "172.16.0.1:80", "100.64.0.1", "[fd00::1]", "[fe80::1]:80", "[::ffff:10.0.0.1]", "0.0.0.0:80"),
    *("127.1:5000", "0x7f.0.0.1:80", "2130706433:80", "224.0.0.1"),
)


@pytest.mark.parametrize("registry", PRIVATE)
async def test_a_private_registry_is_not_asked(registry: str) -> None:
    registries = Registries(())
    with pytest.raises(ImageFault):
        await registries.check(f"{registry}/x:1")


@pytest.mark.parametrize("address", ["10.0.0.7", "127.0.0.53", "::1", "169.254.169.254", "fe80::1%eth0"])
async def test_a_name_for_a_private_address_is_not_asked(address: str) -> None:
    async def both(_: str) -> list[str]:
        return ["93.184.216.34", address]

    with pytest.raises(ImageFault, match=r"registry\.example is at a private address"):
        await Registries((), both).check("registry.example/x:1")

    async def public(_: str) -> list[str]:
        return ["93.184.216.34", "2606:2800:220:1::1"]

    await Registries((), public).check("registry.example/x:1")


async def test_what_the_operator_lists_is_asked() -> None:
    options = SandboxOptions(
        cache=Path("/nowhere"),
        docker_registry="10.1.2.3:5000/team/tb",
        image_registries="localhost:7000, other.example",
    )
    registries = Registries.of(options)
    for name in ("10.1.2.3:5000", "localhost:7000", "other.example"):
        await registries.check(f"{name}/x:1")
        assert registries.trusts(name)
    assert not registries.trusts("docker.io")
    with pytest.raises(ImageFault):
        await registries.check("10.1.2.3:5001/x:1")


@pytest.mark.parametrize(
    "name", ["a b/x", "evil.example\t/x", "-x.example/x", "a.example%2f/x", "user@a.example/x", "a.example:x/y"]
)
async def test_odd_registry_names_are_no_names(name: str) -> None:
    with pytest.raises(ImageFault):
        await Registries(()).check(name)


@pytest.fixture
def registry() -> Iterator[Registry]:
    with Registry() as running:
        yield running


def login(folder: Path, registry: Registry) -> Path:
    """What ``docker login`` leaves."""
    auth = base64.b64encode(b"operator:CANARY").decode()
    (folder / "auth.json").write_text(json.dumps({"auths": {registry.address: {"auth": auth}}}))
    return folder / "auth.json"


@sandbox
async def test_only_the_operator_s_registries_get_credentials_and_private_addresses(
    options: SandboxOptions, images: Images, write: Write, registry: Registry, tmp_path: Path
) -> None:
    repository = f"{registry.address}/team/base"
    await Publisher(images, repository, "", "").publish(write("FROM scratch\nCOPY b /b", {"b": "b\n"}), _quiet)
    reference = f"FROM {repository}:a-task\n"
    auth = str(login(tmp_path, registry))
    registry.asked.clear()
    cold = options.model_copy(update={"cache": tmp_path / "cold"})
    stranger = images_with(cold, REGISTRY_AUTH_FILE=auth)
    with pytest.raises(ImageFault, match="private address"):
        await stranger.resolver.resolve(write(reference))
    assert registry.asked == []
    other = images_with(cold.model_copy(update={"image_registries": registry.address}), REGISTRY_AUTH_FILE=auth)
    registry.wants_login = True
    image = await other.resolver.resolve(write(reference))
    assert read(image, "/b") == "b\n"
    assert any("operator:CANARY" in login for login in registry.logins)
    registry.logins.clear()
    registry.asked.clear()
    environ = {**tool_environment(), "REGISTRY_AUTH_FILE": auth}
    nearby = BuildahStore(tmp_path / "third", environ, MachineNetwork("test"))
    with pytest.raises(ImageFault):  # the same file, for a registry that is not the operator's
        await nearby.pull(f"{repository}:a-task", _quiet, trusted=False)
    assert registry.asked
    assert registry.logins == []


@sandbox
async def test_the_image_of_another_task_is_no_base(images: Images, write: Write) -> None:
    image = await images.resolver.resolve(write("FROM debian:bookworm-slim\nRUN echo secret > /secret"))
    with pytest.raises(ImageFault, match="another task"):
        await images.resolver.resolve(write(f"FROM {image.reference}\n"))
    with pytest.raises(ImageFault, match="another task"):
        await images.resolver.resolve(write(f"FROM debian:bookworm-slim\nCOPY --from={image.reference} /secret /x\n"))


def test_the_listener_behind_the_closed_doors_answers(counter: Counter) -> None:
    """The twin of the closed doors: from this machine the listener answers."""
    host, port = counter.address
    with socket.create_connection((host, port), timeout=LIMIT_SEC) as connection:
        connection.shutdown(socket.SHUT_WR)
        connection.recv(1)
    assert counter.count == 1


def _quiet(_: str) -> None:
    """For logs that nobody reads."""
