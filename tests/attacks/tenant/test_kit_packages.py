"""A tenant names a version of an agent, and that package is hostile. Building its kit runs none of its code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from seatrial.agents.kits.packages import Tools
from seatrial.agents.kits.shelf import KitShelf
from seatrial.errors import SetupProblem
from seatrial.settings import package_environment
from tests.agent_kits import TINY_NODE, TINY_PYTHON, fill, shelf_of
from tests.package_registry import package_registry

CANARY = "sk-canary-of-the-installation"


def hostile(flag: Path) -> dict[str, str]:
    """All scripts that npm runs around an installation."""
    names = ("preinstall", "install", "postinstall", "prepare", "prepublish", "preprepare", "postprepare")
    return {name: f"touch {flag}-{name}; env > {flag}.env" for name in names}


@pytest.fixture(autouse=True)
def secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "SEATRIAL_DATABASE_URL", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN"):
        monkeypatch.setenv(name, CANARY)


async def test_no_script_of_a_package_runs(tmp_path: Path) -> None:
    flag = tmp_path / "ran"
    with package_registry() as registry:
        registry.add_npm("hostile-part", "1.0.0", {"index.js": ""}, scripts=hostile(tmp_path / "ran-part"))
        fill(registry, scripts=hostile(flag), dependencies={"hostile-part": "*"})
        ready = await shelf_of(tmp_path / "kits", registry).get(TINY_NODE.agent)
    assert list(tmp_path.glob("ran*")) == []
    assert (ready.tree / "agent/node_modules/hostile-part/index.js").is_file()  # the benign twin: it is installed


async def test_a_source_package_is_not_built(tmp_path: Path) -> None:
    flag = tmp_path / "ran"
    setup = f"import os, pathlib\npathlib.Path({str(flag)!r}).write_text(str(dict(os.environ)))\n"
    with package_registry() as registry:
        registry.add_source("tiny-python-agent", "1.0.0", {"setup.py": setup, "PKG-INFO": "Metadata-Version: 1.0\n"})
        with pytest.raises(SetupProblem):
            await shelf_of(tmp_path / "kits", registry).get(TINY_PYTHON.agent, "1.0.0")
    assert not flag.exists()


async def test_a_program_of_a_package_is_not_started(tmp_path: Path) -> None:
    """Neither to ask for its version, nor to list its libraries: a native part names a loader of its own."""
    flag = tmp_path / "ran"
    loader = tmp_path / "evil-loader"
    loader.write_text(f"#!/bin/sh\ntouch {flag}\n")
    loader.chmod(0o755)
    with package_registry() as registry:
        fill(registry)
        files = {"cli.js": f"require('fs').writeFileSync('{flag}', '')", "index.node": "\x7fELF"}
        registry.add_npm("tiny-node-agent", "2.0.0", files, bin={"tiny": "cli.js"})
        await shelf_of(tmp_path / "kits", registry).get(TINY_NODE.agent, "2.0.0")
    assert not flag.exists()


def test_the_tools_get_no_secret(tmp_path: Path) -> None:
    environment = package_environment()
    assert CANARY not in environment.values()
    said = Tools(environment).run(["env"], tmp_path, "Showing the environment")
    assert CANARY not in said and "PATH=" in said


@pytest.mark.parametrize("command", ["../../../../bin/sh", "/bin/sh", "x/../../../y"])
async def test_a_command_outside_of_its_package_is_refused(tmp_path: Path, command: str) -> None:
    with package_registry() as registry:
        registry.add_npm("tiny-node-agent", "1.0.0", {"cli.js": ""}, bin={"tiny": command})
        with pytest.raises(SetupProblem):
            await shelf_of(tmp_path / "kits", registry).get(TINY_NODE.agent, "1.0.0")


async def test_another_version_than_the_one_asked_for_is_refused(tmp_path: Path) -> None:
    with package_registry() as registry:
        fill(registry)
        about = json.loads(registry.files["/npm/tiny-node-agent"])
        about["versions"]["3.0.0"] = about["versions"]["1.0.0"]
        registry.files["/npm/tiny-node-agent"] = json.dumps(about).encode()
        with pytest.raises(SetupProblem):
            await shelf_of(tmp_path / "kits", registry).get(TINY_NODE.agent, "3.0.0")


async def test_a_kit_tells_nothing_about_this_machine(tmp_path: Path) -> None:
    """Neither where the package came from, nor where it was built."""
    with package_registry() as registry:
        fill(registry)
        shelf: KitShelf = shelf_of(tmp_path / "kits", registry)
        kits = [await shelf.get(agent) for agent in (TINY_NODE.agent, TINY_PYTHON.agent)]
    for ready in kits:
        for path in ready.tree.rglob("*"):
            if path.is_file() and not path.is_symlink() and path.stat().st_size < 1_000_000:
                content = path.read_bytes()
                assert registry.url.encode() not in content, path
                assert str(tmp_path).encode() not in content, path


async def test_an_honest_package_becomes_a_kit(tmp_path: Path) -> None:
    with package_registry() as registry:
        fill(registry)
        ready = await shelf_of(tmp_path / "kits", registry).get(TINY_NODE.agent)
    assert (ready.tree / "bin" / "tiny").read_text().endswith('/agent/node_modules/tiny-node-agent/cli.js "$@"\n')
    assert (ready.tree / "bin" / "node").is_file()
