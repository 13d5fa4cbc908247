"""Set-up of an installed agent in an ``oci`` sandbox: from a ready kit, and by Harbor's own installation beside it.

The kit is built before the clock runs, as it is once per machine. The peer is Harbor's class for codex, with the same
version, in the same image. On most images it runs apt, then downloads nvm, Node and codex. Here it has much less to do:
the image has every Debian package that it asks for, Node among them, and the mark of an image with musl, for which the
class leaves nvm and its Node out. What is left is ``npm install`` of one package. So the peer needs an npm registry and
no other host, and the ratio is a lower bound: a usual image takes Harbor longer, and the kit as long as here.

Where the registry cannot be reached, the row says so and has no ratio. mini-swe-agent, whose kit brings Python, is
measured without a peer.
"""

from __future__ import annotations

import asyncio
import shutil
import statistics
import subprocess
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harbor.agents.installed.codex import Codex
from harbor.agents.installed.mini_swe_agent import MiniSweAgent
from harbor.models.task.config import EnvironmentConfig, NetworkMode, NetworkPolicy
from harbor.models.trial.paths import TrialPaths
from tests.agents.registry import PROOFS

from benchmarks.place import TRIVIAL, Place
from benchmarks.row import Row, shown
from seatrial.agents.kits.fitting import FittedKit
from seatrial.agents.kits.recipes import RECIPES
from seatrial.agents.kits.shelf import KitShelf
from seatrial.sandboxes.oci.environment import OciEnvironment
from seatrial.settings import package_environment

VERSIONS = {proof.agent: proof.version for proof in PROOFS}
_CLASSES: dict[str, Any] = {"codex": Codex, "mini-swe-agent": MiniSweAgent}
_MOST_SEC = 0.5
_TIMES = 20.0
_PATIENCE_SEC = 600.0
_CERTIFICATES = "/etc/npm-certificates.pem"
_FURNISHED = """FROM debian:bookworm-slim
RUN apt-get update \\
 && apt-get install -y --no-install-recommends bash ca-certificates curl nodejs npm ripgrep \\
 && rm -rf /var/lib/apt/lists/* \\
 && touch /etc/alpine-release
WORKDIR /app
"""


async def measure(place: Place) -> list[Row]:
    shelf = KitShelf(place.options().kits_dir, package_environment())
    return [await _beside_harbor(place, shelf), await _alone(place, shelf)]


async def _beside_harbor(place: Place, shelf: KitShelf) -> Row:
    """codex. The kit goes into the peer's image, or into the trivial one if the peer could not run."""
    furnished = place.folder("furnished")
    (furnished / "Dockerfile").write_text(_FURNISHED)
    began = time.monotonic()
    harbors: float | None = None
    try:
        taken = []
        for _ in range(place.count(3, 1)):
            async with asyncio.timeout(_PATIENCE_SEC):
                taken.append(await _set_up(place, "codex", furnished, None))
        harbors = statistics.median(taken)
        peer = (
            f"Harbor's own, by npm alone in an image that has Node and all packages (a lower bound), {shown(harbors)}"
        )
    except Exception as problem:
        failed = f"failed after {shown(time.monotonic() - began)}: {' '.join(str(problem).split())[-120:]}"
        peer = f"Harbor's own installation cannot run here, it {failed}"
    trials = await _from_kit(place, shelf, "codex", furnished if harbors else TRIVIAL / "environment")
    ours = statistics.median(trials)
    ratio = harbors / ours if harbors else None
    met = ours <= _MOST_SEC and (ratio is None or ratio >= _TIMES)
    return Row(_title("codex"), _measured(trials), f"<= {_MOST_SEC:g} s and >= {_TIMES:g} ×", met, peer, ratio)


async def _alone(place: Place, shelf: KitShelf) -> Row:
    """mini-swe-agent: Harbor's installation of it needs hosts beside the package registries."""
    trials = await _from_kit(place, shelf, "mini-swe-agent", TRIVIAL / "environment")
    met = statistics.median(trials) <= _MOST_SEC
    return Row(_title("mini-swe-agent"), _measured(trials), f"<= {_MOST_SEC:g} s", met)


def _title(agent: str) -> str:
    return f"set-up of {agent} {VERSIONS[agent]} in a sandbox, from a ready kit"


def _measured(trials: list[float]) -> str:
    return f"{shown(statistics.median(trials))}, at most {shown(max(trials))}"


async def _from_kit(place: Place, shelf: KitShelf, agent: str, environment: Path) -> list[float]:
    ready = await shelf.get(agent, VERSIONS[agent])
    with shelf.hold(ready):
        kits = [FittedKit(RECIPES[agent], ready) for _ in range(place.count(10, 2))]
        return [await _set_up(place, agent, environment, kit) for kit in kits]


async def _set_up(place: Place, name: str, environment: Path, kit: FittedKit | None) -> float:
    """Seconds of one set-up in a new sandbox. Without a kit, Harbor installs, and the sandbox has a network.

    The agent's program has to start afterwards. That is not in the time, except for the start in Harbor's own."""
    needs = package_environment()
    certificates = needs.get("NODE_EXTRA_CA_CERTS") or needs.get("SSL_CERT_FILE")
    sandbox = _sandbox(place, environment, None if kit is not None else _npm_settings(needs))
    agent = _CLASSES[name](logs_dir=place.folder("logs"), model_name="openai/none", version=VERSIONS[name])
    if kit is not None:
        kit.hand_to(agent)
    await sandbox.start(force_build=False)
    try:
        if kit is None and certificates:
            await sandbox.upload_file(certificates, _CERTIFICATES)
        began = time.monotonic()
        await agent.setup(sandbox)
        taken = time.monotonic() - began
        if kit is not None and not kit.is_used:
            raise RuntimeError(f"The kit of {name} was not used: {kit.notes}")
        program = RECIPES[name].program
        started = await sandbox.exec(f"{program} --help")
        if started.return_code != 0:
            raise RuntimeError(f"{program} does not start after its set-up: {started.stdout}{started.stderr}")
        return taken
    finally:
        await sandbox.stop(delete=True)


def _npm_settings(needs: Mapping[str, str]) -> dict[str, str]:
    """Variables with which npm in a sandbox reaches this machine's registry. No password of a registry is among them
    unless it is in the registry's address."""
    kept = {name: value for name, value in needs.items() if name.lower().endswith("_proxy")}
    kept["NODE_EXTRA_CA_CERTS"] = _CERTIFICATES  # Node goes on without it if there is no such file
    if npm := shutil.which("npm", path=needs["PATH"]):
        command = [npm, "config", "get", "registry"]
        said = subprocess.run(command, env=needs, capture_output=True, text=True, check=False).stdout.strip()
        kept |= {"npm_config_registry": said} if said else {}
    return kept


def _sandbox(place: Place, environment: Path, settings: dict[str, str] | None) -> OciEnvironment:
    """With settings for npm it has a network, too."""
    paths = TrialPaths(trial_dir=place.folder("trial"))
    paths.mkdir()
    mode = NetworkMode.NO_NETWORK if settings is None else NetworkMode.PUBLIC
    return OciEnvironment(
        environment_dir=environment,
        environment_name=TRIVIAL.name,
        session_id=f"{uuid.uuid4().hex[:8]}__env",
        trial_paths=paths,
        task_env_config=EnvironmentConfig(cpus=1, memory_mb=2048, env=settings or {}),
        network_policy=NetworkPolicy(network_mode=mode),
        options=place.options().model_dump(mode="json"),
        owner={"install": place.install, "trial": 1, "try_number": 1},
    )
