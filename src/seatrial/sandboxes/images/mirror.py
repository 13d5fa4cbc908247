"""Which package mirror this machine uses, and which Debian a base's tag means. Reads apt's own files, nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from seatrial.errors import SetupProblem
from seatrial.sandboxes.images.references import parse

_SUITES = {
    "9": "stretch",
    "10": "buster",
    "11": "bullseye",
    "12": "bookworm",
    "13": "trixie",
    "14": "forky",
}
_NAMED = frozenset(_SUITES.values()) | {"stable", "oldstable", "testing", "unstable", "sid"}
_MOVING = {"latest": "stable"}


@dataclass(frozen=True, slots=True)
class DebianBase:
    """A ``debian:*`` image that can be made from packages."""

    suite: str
    slim: bool

    @property
    def name(self) -> str:
        return f"{self.suite}-slim" if self.slim else self.suite


def debian_base(reference: str) -> DebianBase | None:
    """What to make for a reference; ``None`` for everything that is not Docker's own ``debian`` with a known tag."""
    parsed = parse(reference)
    if (parsed.registry, parsed.repository) != ("docker.io", "library/debian") or parsed.digest:
        return None
    # bookworm, bookworm-slim, 12, 12.7, 12-slim, bookworm-20240904-slim, stable-slim
    match = re.fullmatch(r"(?P<name>[a-z]+|\d+)(?:\.\d+)?(?:-\d{8})?(?P<slim>-slim)?", parsed.tag)
    if match is None:
        return None
    name = _SUITES.get(match["name"], _MOVING.get(match["name"], match["name"]))
    return DebianBase(name, bool(match["slim"])) if name in _NAMED else None


def system_mirror(apt_dir: Path = Path("/etc/apt")) -> str:
    """The first mirror of Debian's main archive in this machine's sources; ``SetupProblem`` without any."""
    files = [apt_dir / "sources.list", *sorted((apt_dir / "sources.list.d").glob("*"))]
    for path in files:
        if path.suffix in (".list", ".sources") and path.is_file():
            text = path.read_text(errors="replace")
            entries = _stanzas(text) if path.suffix == ".sources" else _one_liners(text)
            for uri, suite in entries:
                if suite in _NAMED and uri.startswith(("http://", "https://")):
                    return uri.rstrip("/")
    raise SetupProblem(
        "This machine's apt names no Debian mirror to make a base image from.",
        fix="Set SEATRIAL_DEBIAN_MIRROR to one.",
    )


def security_mirror(mirror: str) -> str:
    """Where the security archive is by convention: beside the main one."""
    return re.sub(r"/debian$", "/debian-security", mirror) if mirror.endswith("/debian") else f"{mirror}-security"


def _one_liners(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        match = re.match(r"deb\s+(?:\[[^\]]*\]\s+)?(\S+)\s+(\S+)\s+.*\bmain\b", line.strip())
        if match:
            yield match[1], match[2]


def _stanzas(text: str) -> Iterator[tuple[str, str]]:
    for stanza in re.split(r"\n\s*\n", text):
        lines = (line for line in stanza.splitlines() if not line.startswith("#"))
        fields = {key.strip().lower(): value.split() for key, _, value in (line.partition(":") for line in lines)}
        wanted = "deb" in fields.get("types", []) and "main" in fields.get("components", [])
        if wanted and "no" not in fields.get("enabled", []):
            for uri in fields.get("uris", []):
                for suite in fields.get("suites", []):
                    yield uri, suite
