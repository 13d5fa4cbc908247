"""Real builds on a bootstrapped Debian: what Dockerfiles may contain, and that it happens once."""

from __future__ import annotations

import asyncio
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from seatrial.errors import ImageFault
from seatrial.sandboxes.images.assembly import Images, oci_images
from seatrial.sandboxes.images.build_network import MachineNetwork
from seatrial.sandboxes.images.buildah import BuildahStore
from seatrial.sandboxes.options import SandboxOptions
from seatrial.settings import tool_environment
from tests.image_cache import cold_cache
from tests.integration.images.counter import Counter
from tests.integration.images.looking import Write, read, run_in

pytestmark = pytest.mark.sandbox

EVERYTHING = """\
# syntax=docker/dockerfile:1
ARG TAG=bookworm-slim
FROM --platform=$BUILDPLATFORM debian:${TAG} AS maker
ARG FLAVOUR=sweet
ARG GIVEN=default
RUN echo "$FLAVOUR $GIVEN" > /made
SHELL ["/bin/bash", "-c"]
RUN <<SCRIPT
[[ -n $BASH_VERSION ]] && echo "bash $FLAVOUR" >> /made
cat <<'INNER' >> /made
inner $NOT_EXPANDED
INNER
SCRIPT
RUN <<EOF
#!/usr/bin/perl
open(my $out, '>>', '/made'); print $out "perl\\n";
EOF
FROM debian:$TAG AS unused
FROM debian:$TAG
ENV WHO=you
COPY --from=maker /made /made
COPY --chmod=755 <<-EOF /usr/local/bin/greet
	#!/bin/sh
	echo "hello $WHO \\$1"
	EOF
COPY <<'RAW' <<OTHER /etc/two/
raw $WHO
RAW
other $WHO
OTHER
COPY . /app
RUN cat <<ONE > /one && cat <<TWO > /two
1 $WHO
ONE
2
TWO
RUN --mount=type=cache,target=/root/.cache/pip --mount=type=bind,source=req.txt,target=/tmp/req.txt \\
    cp /tmp/req.txt /req && touch /root/.cache/pip/x
WORKDIR /app
USER nobody
ENTRYPOINT ["/usr/local/bin/greet"]
CMD ["there"]
"""


async def test_everything_a_dockerfile_may_contain(images: Images, write: Write, tmp_path: Path) -> None:
    files = {"req.txt": "six\n", "sub/kept.txt": "k", "secret.key": "s", ".dockerignore": "*.key\n"}
    image = await images.resolver.resolve(write(EVERYTHING, files, build_args={"GIVEN": "given"}))
    assert read(image, "/made") == "sweet given\nbash sweet\ninner $NOT_EXPANDED\nperl\n"
    assert read(image, "/etc/two/RAW") == "raw $WHO\n"
    assert read(image, "/etc/two/OTHER") == "other you\n"
    assert (read(image, "/one"), read(image, "/two")) == ("1 you\n", "2\n")
    assert (read(image, "/app/sub/kept.txt"), read(image, "/app/secret.key")) == ("k", None)
    assert (read(image, "/req"), read(image, "/tmp/req.txt")) == ("six\n", None)
    assert not any((layer / "app" / name).exists() for layer in image.layers for name in ("made", "task"))
    config = image.config
    assert (config.workdir, config.user, config.env["WHO"]) == ("/app", "nobody", "you")
    assert (config.entrypoint, config.cmd) == (("/usr/local/bin/greet",), ("there",))
    assert run_in(image, "greet now; id -u; ls /app", tmp_path / "mount") == (
        "hello you now\n0\nDockerfile\nreq.txt\nsub\n"
    )
    assert image.provenance == "built (bootstrapped base: debian:bookworm-slim)"


async def test_packages_can_be_installed(images: Images, write: Write, tmp_path: Path) -> None:
    text = "FROM debian:bookworm-slim\nRUN apt-get update && apt-get install -y --no-install-recommends hello"
    image = await images.resolver.resolve(write(text, build_timeout_sec=280))
    assert run_in(image, "hello", tmp_path / "mount") == "Hello, world!\n"
    assert not any((layer / "usr/share/doc/hello/changelog.gz").exists() for layer in image.layers)


async def test_forty_at_once_are_exactly_one_build(open_images: Images, write: Write, counter: Counter) -> None:
    request = write(f"FROM debian:bookworm-slim\nRUN {counter.tick} && sleep 0.5")
    found = await asyncio.gather(*(open_images.resolver.resolve(request) for _ in range(40)))
    assert counter.count == 1
    assert len({image.digest for image in found}) == 1
    await open_images.resolver.resolve(write(f"FROM debian:bookworm-slim\nRUN {counter.tick}"))
    assert counter.count == 2  # the counter does count: another environment is another build


RESOLVE = """\
import asyncio, pathlib, sys
from seatrial.sandboxes.images.image import ImageRequest
from seatrial.sandboxes.images.assembly import oci_images
from seatrial.sandboxes.options import SandboxOptions
async def main():
    images = oci_images(SandboxOptions.model_validate_json(sys.argv[1]))
    request = ImageRequest(task_name="a-task", environment_dir=pathlib.Path(sys.argv[2]))
    found = await asyncio.gather(*(images.resolver.resolve(request) for _ in range(10)))
    print(*{image.digest for image in found})
asyncio.run(main())
"""


def test_four_processes_are_exactly_one_build(open_options: SandboxOptions, write: Write, counter: Counter) -> None:
    request = write(f"FROM debian:bookworm-slim\nRUN {counter.tick} && sleep 0.5")
    argv = [sys.executable, "-c", RESOLVE, open_options.model_dump_json(), str(request.environment_dir)]
    running = [subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    said = [process.communicate(timeout=500)[0] for process in running]
    assert [process.returncode for process in running] == [0] * 4
    assert counter.count == 1
    assert len(set(said)) == 1
    assert said[0].startswith("sha256:")


async def test_a_failed_build_tells_why_and_keeps_its_log(images: Images, write: Write) -> None:
    heard: list[str] = []
    request = write("FROM debian:bookworm-slim\nRUN echo so far so good && exit 7")
    with pytest.raises(ImageFault, match=r"a-task: .*exit status 7.*log: (\S+)") as caught:
        await images.resolver.resolve(request, heard.append)
    log = Path(str(caught.value).rpartition(" ")[2])
    assert "so far so good" in log.read_text()
    assert "so far so good" in "".join(heard)
    (request.environment_dir / "Dockerfile").write_text("FROM debian:bookworm-slim\nRUN true\n")
    assert (await images.resolver.resolve(request)).source == "built"


async def test_output_without_end_costs_no_memory(images: Images, write: Write) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seen = 0

    def count(text: str) -> None:
        nonlocal seen
        seen += len(text)

    image = await images.resolver.resolve(
        write("FROM debian:bookworm-slim\nRUN head -c 100000000 /dev/zero | tr '\\000' x"), count
    )
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 1024
    assert image.build_log is not None
    assert 60_000_000 < image.build_log.stat().st_size < 70_000_000
    assert 60_000_000 < seen < 70_000_000


async def test_an_image_that_is_here_is_found_without_starting_anything(images: Images, write: Write) -> None:
    request = write("FROM debian:bookworm-slim\nRUN echo 1 > /x")
    first = await images.resolver.resolve(request)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    for _ in range(20):
        assert (await images.resolver.resolve(request)).layers == first.layers
    assert resource.getrusage(resource.RUSAGE_CHILDREN) == before, "no process was started"


async def test_too_many_layers_become_one_directory(warm: Path, images: Images, write: Write) -> None:
    image = await images.resolver.resolve(write("FROM debian:bookworm-slim\nRUN rm /etc/issue && echo flat > /flat"))
    assert len(image.layers) == 2
    narrow = BuildahStore(warm / "images" / "oci", tool_environment(), MachineNetwork("test"), mount_options_limit=100)
    flat = await narrow.find(image.reference)
    assert flat is not None
    assert len(flat.layers) == 1
    assert (flat.layers[0] / "flat").read_text() == "flat\n"
    assert not (flat.layers[0] / "etc/issue").exists()
    assert (flat.layers[0] / "usr/bin/su").stat().st_mode & 0o4000
    again = await narrow.find(image.reference)
    assert again is not None
    assert again.layers == flat.layers
    await narrow.remove(image.digest)
    assert not flat.layers[0].exists()


async def test_without_overlay_whole_copies_do(warm: Path, write: Write, tmp_path: Path) -> None:
    _, options = cold_cache(warm, tmp_path / "cache")
    (options.images_dir / "oci").mkdir()
    (options.images_dir / "oci" / "driver").write_text("vfs")
    images = oci_images(options)
    image = await images.resolver.resolve(write("FROM debian:bookworm-slim\nRUN echo copy > /copy"))
    assert len(image.layers) == 1
    assert (image.layers[0] / "copy").read_text() == "copy\n"
    assert (image.layers[0] / "bin/sh").exists()
    assert image.bases[0].source == "bootstrapped"
    assert [line.digest for line in await images.store.list() if line.labels.get("seatrial.key")] == [image.digest]


async def test_certificates_reach_a_build_on_a_base_without_them(warm: Path, write: Write, tmp_path: Path) -> None:
    pem = "-----BEGIN CERTIFICATE-----\nQ0FOQVJZ\n-----END CERTIFICATE-----\n"
    (tmp_path / "ca.pem").write_text(pem)
    plain, options = cold_cache(warm, tmp_path / "cache")
    await plain.resolver.resolve(write("FROM debian:bookworm-slim"))
    images = oci_images(options.model_copy(update={"extra_ca_file": tmp_path / "ca.pem"}))
    image = await images.resolver.resolve(write("FROM debian:bookworm-slim\nCOPY . /app\nRUN echo $PIP_CERT > /cert"))
    bundle = (read(image, "/cert") or "").strip()
    assert read(image, bundle) == pem
    assert read(image, "/usr/local/share/ca-certificates/seatrial-000.crt") == pem
    assert "PIP_CERT" not in image.config.env
    assert not any((layer / "app" / "made").exists() for layer in image.layers)
