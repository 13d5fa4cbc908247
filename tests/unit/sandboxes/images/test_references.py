from __future__ import annotations

import pytest

from seatrial.errors import ImageFault
from seatrial.sandboxes.images.references import familiar, mapped, parse, version_of


@pytest.mark.parametrize(
    ("written", "full"),
    [
        ("debian", "docker.io/library/debian:latest"),
        ("debian:bookworm-slim", "docker.io/library/debian:bookworm-slim"),
        ("alexgshaw/hello:20251031", "docker.io/alexgshaw/hello:20251031"),
        ("ghcr.io/owner/name:1", "ghcr.io/owner/name:1"),
        ("localhost:5000/tb:x", "localhost:5000/tb:x"),
        ("localhost/seatrial:abc", "localhost/seatrial:abc"),
        ("index.docker.io/library/debian:12", "docker.io/library/debian:12"),
        ("debian@sha256:" + "a" * 64, "docker.io/library/debian@sha256:" + "a" * 64),
    ],
)
def test_references_are_spoken_in_full(written: str, full: str) -> None:
    assert str(parse(written)) == full
    assert str(parse(full)) == full


@pytest.mark.parametrize("bad", ["", "Debian", "debian:", "a b", "--help", "debian:x y", "debian@sha256:short"])
def test_what_is_no_reference_is_refused(bad: str) -> None:
    with pytest.raises(ImageFault):
        parse(bad)


def test_the_private_copy_of_a_pinned_image() -> None:
    assert mapped("reg.example:5000/tb", "hello-world", "alexgshaw/hello:20251031") == (
        "reg.example:5000/tb:hello-world-20251031"
    )
    assert mapped("reg.example/tb", "terminal-bench/hello") == "reg.example/tb:hello"
    assert version_of("debian@sha256:" + "b" * 64) == "b" * 12


def test_familiar_names_lose_what_everybody_knows() -> None:
    assert familiar("docker.io/library/debian:12") == "debian:12"
    assert familiar("ghcr.io/a/b:1") == "ghcr.io/a/b:1"


def test_only_loopback_registries_are_spoken_to_without_tls() -> None:
    assert parse("127.0.0.1:5000/x:1").on_this_machine
    assert parse("localhost:5000/x:1").on_this_machine
    assert not parse("registry.example:5000/x:1").on_this_machine
    assert not parse("localhost.example:5000/x:1").on_this_machine
