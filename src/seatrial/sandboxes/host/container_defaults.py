"""What a container has unless its image or task says otherwise. The same in both sandboxes and in builds, as Docker has
it."""

from __future__ import annotations

DOCKER_CAPABILITIES = tuple(
    f"CAP_{name}"
    for name in [
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "NET_RAW",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    ]
)
DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
FOUNDATIONS = ("/bin/sh", "/bin/bash", "/usr/bin/env")
"""Interpreters that scripts name in their first line. A sandbox that lost one of its image is broken."""
