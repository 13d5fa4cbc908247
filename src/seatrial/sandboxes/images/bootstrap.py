"""Makes ``debian:*`` bases from the package mirror where no registry answers. Announced, labelled, cached.

Called by ``bases`` and by ``seatrial images bootstrap``. A Debian never stands in for another distribution.
"""

from __future__ import annotations

import asyncio
import hashlib
import tempfile
import urllib.request
from collections.abc import Mapping
from pathlib import Path

from seatrial.errors import ImageFault
from seatrial.removal import remove_tree
from seatrial.sandboxes.images import commands
from seatrial.sandboxes.images.confinement import own_mounts
from seatrial.sandboxes.images.image import LABEL_BOOTSTRAPPED, Image, ImageStore, LogSink
from seatrial.sandboxes.images.locks import file_lock
from seatrial.sandboxes.images.mirror import DebianBase, debian_base, security_mirror, system_mirror
from seatrial.sandboxes.images.references import familiar, parse
from seatrial.sandboxes.images.trust import LABEL_TRUST, Trust

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
        """The base under the name that was asked for, made now or loaded from what was made before."""
        base = debian_base(reference)
        if base is None:
            raise ImageFault(f"{familiar(reference)} is not a Debian base that can be made from packages.")
        archive = await self._archive(base, log)
        labels = {LABEL_BOOTSTRAPPED: base.name}
        if self._trust is not None:
            labels[LABEL_TRUST] = self._trust.digest
        image = await store.load_root(str(parse(reference)), archive, labels, log)
        log(f"Bootstrapped {familiar(reference)} as {image.digest}; it is not the image of a registry.\n")
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
            # chroot'ed maintainer scripts are Debian's; mounts and processes end with the tool all the same
            argv = own_mounts(["debootstrap", "--variant=minbase", base.suite, str(root), mirror])
            await self._tool([*argv], log)
            await asyncio.to_thread(self._furnish, base, mirror, root)
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
            last = (ended.tail.strip().splitlines() or ["no output"])[-1]
            raise ImageFault(f"Debian could not be bootstrapped: {last}", fix="See the log; is the mirror reachable?")

    def _furnish(self, base: DebianBase, mirror: str, root: Path) -> None:
        """Sources that work, nothing of the host's, and as small as the image of that name."""
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
    """Removes the files below a folder; the folders stay, because packages expect them."""
    for path in folder.rglob("*"):
        if (path.is_file() or path.is_symlink()) and path.name != keep:
            path.unlink()


def _sources(suite: str, mirror: str) -> str:
    candidates = [(mirror, suite), (mirror, f"{suite}-updates"), (security_mirror(mirror), f"{suite}-security")]
    lines = [f"deb {uri} {name} main\n" for uri, name in candidates if name == suite or _serves(uri, name)]
    return "".join(lines)


def _serves(uri: str, suite: str) -> bool:
    request = urllib.request.Request(f"{uri}/dists/{suite}/InRelease", method="HEAD")  # noqa: S310 - the mirror is the operator's
    try:
        with urllib.request.urlopen(request, timeout=15) as answer:  # noqa: S310
            return bool(answer.status == 200)
    except OSError:
        return False
