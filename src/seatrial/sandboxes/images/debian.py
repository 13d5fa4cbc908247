"""Makes ``debian:*`` bases from the package mirror if no registry answers. The log and a label of the image say so.

``fetcher`` and ``seatrial images bootstrap`` call it. It makes no other distribution.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import tempfile
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from seatrial.errors import ImageFault, SetupProblem
from seatrial.sandboxes.images import commands
from seatrial.sandboxes.images.confinement import own_mounts
from seatrial.sandboxes.images.image import LABEL_BOOTSTRAPPED, Image, ImageStore, LogSink
from seatrial.sandboxes.images.references import familiar, parse
from seatrial.sandboxes.images.trust import LABEL_TRUST, Trust
from seatrial.system.file_locks import file_lock
from seatrial.system.removal import remove_tree

_SLIM_AWAY = ("usr/share/doc", "usr/share/info", "usr/share/locale", "usr/share/man", "usr/share/groff")
_APT_AWAY = ("var/cache/apt", "var/lib/apt/lists", "var/cache/debconf", "var/log")
_SLIM_RULES = (
    "".join(f"path-exclude /{folder}/*\n" for folder in _SLIM_AWAY) + "path-include /usr/share/doc/*/copyright\n"
)
_APT_RULES = """\
# No package files, lists or translations are kept: this root is the start of an image.
Binary::apt::APT::Keep-Downloaded-Packages "false";
DPkg::Post-Invoke { "rm -f /var/cache/apt/archives/*.deb /var/cache/apt/archives/partial/*.deb || true"; };
Acquire::Languages "none";
Acquire::GzipIndexes "true";
APT::AutoRemove::SuggestsImportant "false";
Dir::Cache::pkgcache "";
Dir::Cache::srcpkgcache "";
"""
_LIMIT_SEC = 1800.0
_SUITES = {"9": "stretch", "10": "buster", "11": "bullseye", "12": "bookworm", "13": "trixie", "14": "forky"}
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


class DebianBootstrap:
    """Makes root file systems with debootstrap and keeps their tar files for every store."""

    def __init__(self, folder: Path, environ: Mapping[str, str], mirror: str = "", trust: Trust | None = None) -> None:
        self._folder = folder
        self._environ = dict(environ)
        self._mirror = mirror.rstrip("/")
        self._trust = trust

    def can_make(self, reference: str) -> bool:
        return debian_base(reference) is not None

    async def make(self, reference: str, store: ImageStore, log: LogSink) -> Image:
        """The base under the requested name, made now or loaded from an earlier archive."""
        base = debian_base(reference)
        if base is None:
            raise ImageFault(f"{familiar(reference)} is not a Debian base that can be made from packages.")
        archive = await self._archive(base, log)
        labels = {LABEL_BOOTSTRAPPED: base.name}
        if self._trust is not None:
            labels[LABEL_TRUST] = self._trust.digest
        image = await store.load_root(str(parse(reference)), archive, labels, log)
        log(f"Bootstrapped {familiar(reference)} as {image.digest}; it does not come from a registry.\n")
        return image

    async def _archive(self, base: DebianBase, log: LogSink) -> Path:
        mirror = self._mirror or await asyncio.to_thread(system_mirror)
        facts = f"{mirror} {base.name} {self._trust.digest if self._trust else ''} {_APT_RULES} {_SLIM_RULES}"
        archive = self._folder / f"debian-{base.name}-{hashlib.sha256(facts.encode()).hexdigest()[:12]}.tar"
        async with file_lock(archive.with_suffix(".lock")):
            if not archive.exists():
                log(f"No registry answers: bootstrapping Debian {base.name} from {mirror}.\n")
                await self._bootstrap(base, mirror, archive, log)
        return archive

    async def _bootstrap(self, base: DebianBase, mirror: str, archive: Path, log: LogSink) -> None:
        commands.require("debootstrap", self._environ)
        scratch = Path(tempfile.mkdtemp(prefix="bootstrap-", dir=self._folder))
        try:
            scratch.chmod(0o755)  # apt's own user has to reach what it downloads
            root = scratch / "root"
            await self._tool(own_mounts(["debootstrap", "--variant=minbase", base.suite, str(root), mirror]), log)
            await asyncio.to_thread(self._configure, base, mirror, root)
            part = scratch / "root.tar"
            tar = ["tar", "--create", "--file", str(part), "--directory", str(root), "--numeric-owner", "--sort=name"]
            await self._tool([*tar, "--xattrs", "--exclude=./dev/*", "."], log)
            part.replace(archive)
        finally:
            await asyncio.shield(asyncio.to_thread(remove_tree, scratch))

    async def _tool(self, argv: list[str], log: LogSink) -> None:
        env = {**self._environ, "DEBIAN_FRONTEND": "noninteractive", "HOME": "/root"}
        ended = await commands.run(argv, env, log, timeout_sec=_LIMIT_SEC)
        if not ended.ok:
            fix = "See the log, and check that the mirror is reachable."
            raise ImageFault(f"Debian could not be bootstrapped: {ended.last_line}", fix=fix)

    def _configure(self, base: DebianBase, mirror: str, root: Path) -> None:
        """Sets the package sources, removes files of the host, and makes it as small as the registry's image."""
        for name in ("etc/hostname", "etc/resolv.conf"):
            (root / name).unlink(missing_ok=True)
        (root / "etc/apt/sources.list").write_text(_sources(base.suite, mirror))
        (root / "etc/apt/apt.conf.d/seatrial").write_text(_APT_RULES)
        policy = root / "usr/sbin/policy-rc.d"
        policy.write_text("#!/bin/sh\nexit 101\n")
        policy.chmod(0o755)
        for folder in _APT_AWAY:
            _empty(root / folder)
        if base.slim:
            (root / "etc/dpkg/dpkg.cfg.d/seatrial-slim").write_text(_SLIM_RULES)
            for folder in _SLIM_AWAY:
                _empty(root / folder, keep="copyright")
        if self._trust is not None:
            self._trust.add_to(root)


def _empty(folder: Path, keep: str | None = None) -> None:
    """Removes the files below a folder. Folders stay, because packages expect them."""
    for path in folder.rglob("*"):
        if (path.is_file() or path.is_symlink()) and path.name != keep:
            path.unlink()


def _sources(suite: str, mirror: str) -> str:
    candidates = [(mirror, suite), (mirror, f"{suite}-updates"), (security_mirror(mirror), f"{suite}-security")]
    served = [(uri, name) for uri, name in candidates if name == suite or _serves(uri, name)]
    return "".join(f"deb {uri} {name} main\n" for uri, name in served)


def _serves(uri: str, suite: str) -> bool:
    request = urllib.request.Request(f"{uri}/dists/{suite}/InRelease", method="HEAD")  # noqa: S310 - the mirror is the operator's
    try:
        with urllib.request.urlopen(request, timeout=15) as answer:  # noqa: S310
            return bool(answer.status == 200)
    except OSError:
        return False


def debian_base(reference: str) -> DebianBase | None:
    """The base for a reference. ``None`` unless it is Docker's own ``debian`` with a known tag."""
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
    """The first mirror of Debian's main archive in this machine's apt sources. ``SetupProblem`` without any."""
    files = [apt_dir / "sources.list", *sorted((apt_dir / "sources.list.d").glob("*"))]
    for path in files:
        if path.suffix in (".list", ".sources") and path.is_file():
            text = path.read_text(errors="replace")
            entries = _stanzas(text) if path.suffix == ".sources" else _one_liners(text)
            for uri, suite in entries:
                if suite in _NAMED and uri.startswith(("http://", "https://")):
                    return uri.rstrip("/")
    raise SetupProblem("This machine's apt sources name no Debian mirror.", fix="Set SEATRIAL_DEBIAN_MIRROR to one.")


def security_mirror(mirror: str) -> str:
    """The security archive, which by convention is beside the main one."""
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
