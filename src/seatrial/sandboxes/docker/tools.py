"""The image that sidecars run from: a static busybox, and setpriv with its libraries, taken from this machine.

``sidecar`` asks for it. Nothing of it ever lies in a sandbox's own file system, where the agent could change what
a privileged process is about to run.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import re
import shutil
import subprocess
import tarfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from seatrial.errors import SetupProblem
from seatrial.sandboxes.docker.client import EngineClient, EngineRefused

BUSYBOX = "/bin/busybox"
LABEL = "seatrial.tools"
_FIX = "Run: apt-get install busybox-static util-linux"


@dataclass(frozen=True, slots=True)
class Tools:
    """The archive of the image's files, and its name."""

    archive: bytes
    reference: str


async def ensure_tools(client: EngineClient) -> str:
    """The image's reference; brings it into the engine where it is missing."""
    tools = await asyncio.to_thread(collect)
    try:
        await client.get(f"/images/{tools.reference}/json")
    except EngineRefused as error:
        if error.status != 404:
            raise
        tag = tools.reference.rpartition(":")[2]
        query = {"fromSrc": "-", "repo": tools.reference, "changes": f"LABEL {LABEL}={tag}"}
        async with client.stream("POST", "/images/create", data=_once(tools.archive), query=query) as answer:
            await answer.read()
    return tools.reference


@lru_cache(maxsize=1)
def collect() -> Tools:
    """Blocking, some milliseconds, once per process."""
    busybox, setpriv = _program("busybox"), _program("setpriv")
    if _libraries(busybox):
        raise SetupProblem("This machine's busybox is not a static one.", fix=_FIX)
    files = {BUSYBOX: busybox, "/bin/setpriv": setpriv}
    for source in _libraries(setpriv):
        name = "ld.so" if source.name.startswith("ld-") else source.name
        files[f"/lib/{name}"] = source
    if "/lib/ld.so" not in files:
        raise SetupProblem("No dynamic loader was found for setpriv.", fix=_FIX)
    archive = _archive(files)
    return Tools(archive, f"seatrial/tools:{hashlib.sha256(archive).hexdigest()[:16]}")


def _archive(files: dict[str, Path]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for folder in ("bin", "lib", "proc", "sys", "dev", "etc", "tmp"):
            member = tarfile.TarInfo(folder)
            member.type, member.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(member)
        for name, source in sorted(files.items()):
            content = source.read_bytes()
            member = tarfile.TarInfo(name.lstrip("/"))
            member.size, member.mode = len(content), 0o755
            tar.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def _program(name: str) -> Path:
    found = shutil.which(name, path="/bin:/usr/bin:/usr/local/bin:/sbin:/usr/sbin")
    if found is None:
        raise SetupProblem(f"{name} is not installed; grading in the docker sandbox needs it.", fix=_FIX)
    return Path(found).resolve()


def _libraries(program: Path) -> list[Path]:
    listing = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=False).stdout
    return [Path(path) for path in re.findall(r"(/\S+) \(0x", listing)]


async def _once(data: bytes) -> AsyncIterator[bytes]:
    yield data
