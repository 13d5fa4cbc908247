"""A worker for tests of leftovers: takes a network, starts a process in it that outlives the worker, and waits.

Prints the number of that process. Arguments: a folder, the resolv.conf and the hosts file to use.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

from harbor.models.task.config import NetworkPolicy

from seatrial.sandboxes.network.names import MachineNames
from seatrial.sandboxes.network.network_set import SandboxNetworks
from seatrial.sandboxes.options import SandboxOptions


async def hold(folder: Path, resolv_conf: Path, hosts: Path) -> None:
    networks = SandboxNetworks(SandboxOptions(cache=folder), install="test", names=MachineNames(resolv_conf, hosts))
    network = await networks.acquire(NetworkPolicy(), "held")
    left = subprocess.Popen(
        ["nsenter", f"--net={network.netns_path}", "sh", "-c", "echo $$; exec sleep 600"],
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert left.stdout is not None
    print(left.stdout.readline().decode().strip(), flush=True)
    await asyncio.sleep(600)


if __name__ == "__main__":
    asyncio.run(hold(*map(Path, sys.argv[1:])))
