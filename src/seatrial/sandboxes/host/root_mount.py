"""The root file system of a sandbox: a writable view of an image's read-only layers.

``pod_directory`` makes it in a thread of ``PrivateMounts``. Overlay where the kernel allows it, else fuse-overlayfs,
else a copy; which one it was is told.
"""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

from seatrial.errors import SandboxFault
from seatrial.sandboxes.host.private_mounts import MS_BIND, mount, unmount

RootKind = Literal["overlay", "fuse-overlayfs", "copy"]
_OPTIONS_LIMIT = 4000


class RootMount:
    """The directories behind one sandbox's root, all below one directory of its own."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.merged = directory / "root"
        self.upper = directory / "changes"
        self._work = directory / "work"
        self._daemon = directory / "fuse.pid"
        self._server: subprocess.Popen[bytes] | None = None

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
                return kind
        raise SandboxFault(f"No root file system could be made ({'; '.join(problems)}).")

    def hide(self) -> None:
        """Takes the mount out of this process's sight; the containers keep theirs."""
        with suppress(OSError):  # it may not be mounted yet, or not any more
            unmount(self.merged)

    def end(self) -> None:
        """Ends what serves the root, once no process uses it any more."""
        if self._server is not None:
            self._server.terminate()
            self._server.wait()
            return
        with suppress(FileNotFoundError, ValueError, ProcessLookupError):  # whoever started it is gone
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
        for layer in reversed(layers):
            _lay_over(layer, self.merged)
        # A mount of its own, like the others, so that a runtime can take it for a root.
        mount(self.merged, self.merged, None, MS_BIND)


def _lay_over(layer: Path, target: Path) -> None:
    """Copies one layer over what is there, removing what it says is gone."""
    if _is_opaque(layer):
        for child in target.iterdir():
            _remove(child)
    for source in layer.iterdir():
        copy = target / source.name
        status = source.lstat()
        if stat.S_ISCHR(status.st_mode) and status.st_rdev == 0:
            _remove(copy)
        elif stat.S_ISDIR(status.st_mode):
            if copy.is_symlink() or not copy.is_dir():
                _remove(copy)
                copy.mkdir()
            _lay_over(source, copy)
            os.chown(copy, status.st_uid, status.st_gid)
            shutil.copystat(source, copy)
        elif not stat.S_ISBLK(status.st_mode) and not stat.S_ISCHR(status.st_mode):
            _remove(copy)
            _copy_file(source, copy, status)


def _copy_file(source: Path, copy: Path, status: os.stat_result) -> None:
    if stat.S_ISLNK(status.st_mode):
        copy.symlink_to(source.readlink())
    elif stat.S_ISREG(status.st_mode):
        shutil.copyfile(source, copy)
    else:
        return
    os.chown(copy, status.st_uid, status.st_gid, follow_symlinks=False)
    shutil.copystat(source, copy, follow_symlinks=False)


def _is_opaque(directory: Path) -> bool:
    try:
        return os.getxattr(directory, "trusted.overlay.opaque") == b"y"
    except OSError:
        return False


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
