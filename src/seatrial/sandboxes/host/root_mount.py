"""The root file system of a sandbox: a writable view of an image's read-only layers.

``pod_directory`` makes it in a thread of ``PrivateMounts``. Overlay where the kernel allows it, else fuse-overlayfs,
else a copy. Each is mounted ``nodev``: device nodes of an image do not work. What is
written goes to the sandbox's ``Disk`` if it has one, else to the machine's own file system.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

from seatrial.errors import SandboxFault
from seatrial.sandboxes.host.disk_image import Disk
from seatrial.sandboxes.host.layer_copy import apply_layer
from seatrial.sandboxes.host.private_mounts import MS_BIND, MS_NODEV, MS_REMOUNT, mount, unmount

RootKind = Literal["overlay", "fuse-overlayfs", "copy"]
_OPTIONS_LIMIT = 4000


class RootMount:
    """The directories behind one sandbox's root, all below one directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.merged = directory / "root"
        self.disk: Disk | None = None
        """Set before ``make`` if the sandbox has a disk image."""
        self._daemon = directory / "fuse.pid"
        self._server: subprocess.Popen[bytes] | None = None

    @property
    def writable(self) -> Path:
        """Where everything is that the sandbox can write to."""
        return self.disk.path if self.disk is not None else self.directory

    @property
    def upper(self) -> Path:
        """What the sandbox changed; empty for a copied root."""
        return self.writable / "changes"

    @property
    def _work(self) -> Path:
        return self.writable / "work"

    def make(self, layers: Sequence[Path], kinds: Sequence[RootKind] = ()) -> RootKind:
        """Leaves the root mounted at ``merged``; tries what is given, in that order."""
        for path in (self.merged, self.upper, self._work):
            path.mkdir(exist_ok=True)
        self.upper.chmod(0o755)
        problems = []
        for kind in kinds or ("overlay", "fuse-overlayfs", "copy"):
            try:
                if kind == "overlay":
                    self._overlay(layers)
                elif kind == "fuse-overlayfs":
                    self._fuse(layers)
                else:
                    self._copy(layers)
            except (OSError, subprocess.SubprocessError) as error:
                problems.append(f"{kind}: {error}")
            else:
                nodev(self.merged)
                return kind
        raise SandboxFault(f"No root file system could be made ({'; '.join(problems)}).")

    def hide(self) -> None:
        """Unmounts it from this process's namespace; the containers keep their mounts."""
        with suppress(OSError):  # it may not be mounted yet, or not any more
            unmount(self.merged)
        if self.disk is not None:
            with suppress(OSError):
                self.disk.hide()

    def end(self) -> None:
        """Ends what serves the root, once no process uses it any more."""
        self._end_server()
        if self.disk is not None:
            self.disk.end()

    def _end_server(self) -> None:
        if self._server is not None:
            self._server.terminate()
            self._server.wait()
            return
        with suppress(FileNotFoundError, ValueError, ProcessLookupError):  # the process that started it is gone
            process = int(self._daemon.read_text())
            if "fuse-overlayfs" in Path(f"/proc/{process}/cmdline").read_text():
                os.kill(process, signal.SIGTERM)

    def _overlay(self, layers: Sequence[Path]) -> None:
        names = [str(layer) for layer in layers]
        if sum(map(len, names)) > _OPTIONS_LIMIT - 2 * len(str(self.directory)) - 100:
            # Options end at one page. This thread's working directory is its own, so relative names will do.
            above = os.path.commonpath(names)
            os.chdir(above)
            names = [os.path.relpath(name, above) for name in names]
        lower = ":".join(name.replace("\\", "\\\\").replace(":", "\\:") for name in names)
        options = f"lowerdir={lower},upperdir={self.upper},workdir={self._work}"
        try:
            # Nothing of a sandbox has to survive a crash, and without this each unmount syncs the whole disk.
            mount("overlay", self.merged, "overlay", 0, f"{options},volatile")
        except OSError:
            mount("overlay", self.merged, "overlay", 0, options)

    def _fuse(self, layers: Sequence[Path]) -> None:
        options = f"lowerdir={':'.join(map(str, layers))},upperdir={self.upper},workdir={self._work}"
        command = ["fuse-overlayfs", "-f", "-o", options, str(self.merged)]
        daemon = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self._daemon.write_text(str(daemon.pid))
        assert daemon.stderr is not None
        with daemon.stderr:
            for _ in range(200):
                if os.path.ismount(self.merged):
                    self._server = daemon
                    return
                try:
                    daemon.wait(0.01)
                except subprocess.TimeoutExpired:
                    continue
                break
            daemon.kill()
            daemon.wait()
            raise OSError(daemon.stderr.read().decode(errors="replace").strip() or "fuse-overlayfs did not start")

    def _copy(self, layers: Sequence[Path]) -> None:
        copied = self.writable / "copy"
        copied.mkdir(exist_ok=True)
        for layer in reversed(layers):
            apply_layer(layer, copied)
        # A mount of its own, like the others: a runtime accepts no other root.
        mount(copied, self.merged, None, MS_BIND)


def nodev(place: Path) -> None:
    """Disables device nodes on a mount of the calling thread's namespace."""
    mount(None, place, None, MS_REMOUNT | MS_BIND | MS_NODEV)
