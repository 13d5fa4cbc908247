"""Who is to blame for an upload that fails, and where on this machine a download may go.

``Sandbox`` applies both, whatever kind of sandbox it is. ``host.transfer`` and ``docker.files`` copy the files.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from seatrial.errors import SandboxFault

_CAUSED_INSIDE = {errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.ENOSPC, errno.EDQUOT}


@contextmanager
def own_faults(source: Path, target: str) -> Iterator[None]:
    """Turns an upload that fails because of this machine into a ``SandboxFault``, which is never blamed on the agent.

    What an agent can bring about stays an ``OSError``: a full disk, or something else in the place of the target.
    Otherwise an agent could turn a failure into a sandbox fault and get another try."""
    try:
        yield
    except OSError as error:
        removed_inside = error.errno == errno.ENOENT and source.exists()
        if error.errno is None or error.errno in _CAUSED_INSIDE or removed_inside:
            raise
        raise SandboxFault(f"Not uploaded to {target}: {error}") from error


def host_target(target: Path | str, trial_dir: Path) -> Path:
    """Refuses a path through a link, which an earlier download may have made."""
    path = Path(target)
    places = [path, *path.parents] if path.is_relative_to(trial_dir) else [path]
    for place in places:
        if place == trial_dir:
            break
        if place.is_symlink():
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(place))
    return path
