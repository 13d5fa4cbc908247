"""mini-swe-agent without network access in the sandbox: uploaded complete, with its Python interpreter.

Harbor's own class installs it from the internet inside the sandbox, which is slow and fails in offline tasks. Here the
agent is built once on this machine (which needs a package index the first time) and uploaded to each sandbox. The
command, the options and the trajectory are Harbor's. It also works with the stock ``harbor`` CLI by import path: ``-a
seatrial.agents.mini_swe_agent:OfflineMiniSweAgent``.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
from importlib.metadata import distributions
from pathlib import Path, PurePosixPath
from typing import override

from harbor.agents.installed.mini_swe_agent import MiniSweAgent
from harbor.environments.base import BaseEnvironment

from seatrial.errors import SetupProblem
from seatrial.removal import remove_tree
from seatrial.sandboxes.options import SandboxOptions
from seatrial.sandboxes.sandbox import Sandbox
from seatrial.sandboxes.terminal.bundle import copy_libraries, interpreter, make_once, strip_symbols, wrapper
from seatrial.settings import Settings

PLACE = PurePosixPath("/opt/seatrial/mini-swe-agent")
"""Location of the agent in the sandbox."""
DEFAULT_VERSION = "2.4.6"

_EXTRAS = ("orjson", "fastapi", "mcp")  # LiteLLM needs them for tool calls without declaring them
_NOT_NEEDED = ("pyarrow", "pandas", "numpy", "numpy.libs", "datasets", "botocore", "hf_xet")
"""Only needed for running benchmarks with mini-swe-agent itself; two thirds of its size."""
_STDLIB_NOT_NEEDED = (
    "test",
    "idlelib",
    "tkinter",
    "lib2to3",
    "ensurepip",
    "turtledemo",
    "site-packages",
    "__pycache__",
)


class OfflineMiniSweAgent(MiniSweAgent):
    """Harbor's mini-swe-agent, installed from this machine."""

    @override
    async def install(self, environment: BaseEnvironment) -> None:
        options = environment.options if isinstance(environment, Sandbox) else SandboxOptions.of(Settings())
        bundle = await asyncio.to_thread(prepare, options.cache, self._version or DEFAULT_VERSION)
        await environment.upload_dir(bundle, str(PLACE))
        await self.exec_as_root(
            environment,
            command=f"mkdir -p /usr/local/bin && ln -sf {PLACE}/bin/mini-swe-agent /usr/local/bin/mini-swe-agent",
        )

    @override
    def get_version_command(self) -> str | None:
        return f"cat {PLACE}/VERSION"


def prepare(cache: Path, version: str) -> Path:
    """The agent's bundle of that version, built on first use. Blocking."""
    recipe = hashlib.sha256((sys.version + Path(__file__).read_text()).encode()).hexdigest()[:12]
    return make_once(cache / "agents" / f"mini-swe-agent-{version}-{recipe}", lambda made: _build(made, version))


def _build(bundle: Path, version: str) -> None:
    library = bundle / sys.platlibdir / f"python{sys.version_info.major}.{sys.version_info.minor}"
    (bundle / "bin").mkdir(parents=True)
    shutil.copytree(sysconfig.get_path("stdlib"), library, ignore=shutil.ignore_patterns(*_STDLIB_NOT_NEEDED))
    _copy_extensions(library)
    packages = library / "site-packages"
    _install(packages, version)
    for name in _NOT_NEEDED:
        remove_tree(packages / name)
    shutil.copy2(interpreter(), bundle / "bin" / "python3")
    (bundle / "lib").mkdir(exist_ok=True)
    copy_libraries([interpreter(), *library.rglob("*.so")], bundle / "lib")
    strip_symbols([*(bundle / "lib").glob("*.so*"), bundle / "bin" / "python3"])
    command = wrapper(PLACE, "bin/python3 -B -m minisweagent.run.mini", argv0=f"{PLACE}/bin/python3")
    start = bundle / "bin" / "mini-swe-agent"
    start.write_text(command)
    start.chmod(0o755)
    (bundle / "VERSION").write_text(_installed_version(packages) + "\n")
    compile_all = [str(interpreter()), "-m", "compileall", "-q", "-j", "0", "--invalidation-mode", "unchecked-hash"]
    subprocess.run([*compile_all, str(library)], capture_output=True, check=False)


def _copy_extensions(library: Path) -> None:
    """Some Python builds keep compiled modules in another directory."""
    dynload = Path(sysconfig.get_path("platstdlib")) / "lib-dynload"
    if dynload.is_dir() and not (library / "lib-dynload").is_dir():
        shutil.copytree(dynload, library / "lib-dynload")


def _install(packages: Path, version: str) -> None:
    wanted = [f"mini-swe-agent=={version}", *_EXTRAS]
    uv = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
    if uv is not None:
        # Copies: the bundle must not share files with uv's cache and with environments created from it.
        options = ["--quiet", "--link-mode", "copy", "--python", sys.executable, "--target", str(packages)]
        command = [uv, "pip", "install", *options, *wanted]
    else:
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(packages), *wanted]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ))
    if done.returncode != 0:
        raise SetupProblem(
            f"mini-swe-agent {version} could not be installed from the package index: {done.stderr.strip()[-500:]}",
            fix="This machine must reach the package index the first time.",
        )


def _installed_version(packages: Path) -> str:
    found = [entry.version for entry in distributions(name="mini-swe-agent", path=[str(packages)])]
    return found[0] if found else ""
