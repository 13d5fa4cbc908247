"""What gVisor does for a sandbox, in the words of the trial's lock."""

from __future__ import annotations

from seatrial.sandboxes.oci.gvisor.runsc import PLATFORM


def protections(capabilities: int) -> list[str]:
    return [
        f"gVisor ({PLATFORM}): a kernel of its own answers the sandbox's system calls",
        f"{capabilities} capabilities of Docker's default 14, in that kernel",
        "seccomp: gVisor's own filter towards the machine; inside, commands make no namespaces and mount nothing",
        "no-new-privileges",
    ]
