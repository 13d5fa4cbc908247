"""A compose file's ``tmpfs`` entries: directories of a daemonless sandbox that are kept in memory.

``pod_directory`` mounts each once and both of its containers see the same, so the verifier finds what the agent left
there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from seatrial.sandboxes.host.private_mounts import MS_NODEV, MS_NOEXEC, MS_NOSUID, mount

_PASSED_ON = ("size", "mode", "uid", "gid", "nr_inodes", "nr_blocks")
_HELD_ANYWAY = ("rw", "nosuid", "nodev", "noexec", "exec")


@dataclass(frozen=True, slots=True)
class MemoryDir:
    """One of them. What it holds counts as the sandbox's memory."""

    target: str
    options: tuple[str, ...] = ()
    executable: bool = False
    unheard: tuple[str, ...] = ()
    """Options that mean nothing here."""

    @classmethod
    def read(cls, entry: str) -> MemoryDir:
        """``path`` or ``path:option,option``, as Docker reads it."""
        target, _, text = entry.partition(":")
        words = [word for word in text.split(",") if word]
        return cls(
            target=str(PurePosixPath("/", target)),
            options=tuple(word for word in words if word.partition("=")[0] in _PASSED_ON),
            executable="exec" in words,
            unheard=tuple(word for word in words if word.partition("=")[0] not in (*_PASSED_ON, *_HELD_ANYWAY)),
        )

    @property
    def flags(self) -> tuple[str, ...]:
        """As a container's mount has them."""
        return ("nosuid", "nodev") if self.executable else ("nosuid", "nodev", "noexec")

    def make(self, place: Path) -> None:
        """Blocking; for a thread of ``PrivateMounts``."""
        place.mkdir()
        flags = MS_NOSUID | MS_NODEV | (0 if self.executable else MS_NOEXEC)
        mount("tmpfs", place, "tmpfs", flags, ",".join(("mode=1777", *self.options)))
