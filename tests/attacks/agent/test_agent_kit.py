"""An agent's kit is a directory of this machine that all of its trials see. No task and no agent can change it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from seatrial.agents.kits.kit import digest_of
from seatrial.agents.kits.own_loader import KIT_DIR
from seatrial.agents.kits.shelf import KitShelf
from tests.agent_kits import TINY_PYTHON, fill, put_into, shelf_of
from tests.attacks.agent.test_lent_kit import digest, run
from tests.package_registry import Registry, package_registry
from tests.workplace_fixture import Make

CHANGES = {
    "a program is overwritten": f"echo x > {KIT_DIR}/bin/tiny",
    "a program is written through its link": "echo x > /usr/local/bin/tiny",
    "the loader is removed": f"rm {KIT_DIR}/ld.so",
    "a module is added": f"touch {KIT_DIR}/lib/sitecustomize.py",
    "a mode is changed": f"chmod 4777 {KIT_DIR}/bin/tiny",
    "it is mounted writable": f"mount -o remount,rw,bind {KIT_DIR}",
    "it is unmounted": f"umount -l {KIT_DIR}",
    "a link leads to the same file": f"ln {KIT_DIR}/bin/tiny /app/tiny",
    "it is replaced": f"mv {KIT_DIR} /opt/old",
}


@pytest.fixture(scope="module")
def registry() -> Iterator[Registry]:
    with package_registry() as registry:
        fill(registry)
        yield registry


@pytest.fixture(scope="module")
def shelf(registry: Registry, tmp_path_factory: pytest.TempPathFactory) -> KitShelf:
    return shelf_of(tmp_path_factory.mktemp("shelf") / "kits", registry)


async def test_no_trial_changes_the_kit_of_the_next(make: Make, shelf: KitShelf) -> None:
    ready = await shelf.get(TINY_PYTHON.agent)
    before = digest(ready.tree)
    sandbox = await make()
    await put_into(sandbox, ready)
    worked = [name for name, change in CHANGES.items() if (await sandbox.exec(change)).return_code == 0]
    assert worked == []
    assert digest(ready.tree) == before
    assert '"agent": "tiny"' in await run(sandbox, "tiny")  # the benign twin
    await sandbox.begin_grading()
    assert sandbox.facts.suspicions == ()
    another = await make()
    await put_into(another, ready)
    assert '"agent": "tiny"' in await run(another, "tiny")
    assert digest_of(ready.tree) == ready.kit.digest


PLACES = {
    "a link to a directory of the image": "mkdir -p /app/mine /opt/seatrial && ln -s /app/mine {place}",
    "a link to the tests": "mkdir -p /opt/seatrial && ln -s /tests {place}",
    "a false kit": "mkdir -p {place}/bin && printf '#!/bin/sh\\necho hijacked\\n' > {place}/bin/tiny"
    " && chmod +x {place}/bin/tiny",
    "a file": "mkdir -p /opt/seatrial && echo x > {place}",
    "a link in the way": "mkdir -p /app/mine && ln -s /app/mine /opt/seatrial",
    "a command of that name": "mkdir -p ~/.local/bin && printf '#!/bin/sh\\necho hijacked\\n' > ~/.local/bin/tiny"
    " && chmod +x ~/.local/bin/tiny && cp ~/.local/bin/tiny /usr/local/bin/tiny",
    "a directory as the command": "mkdir -p /usr/local/bin/tiny/x",
}


@pytest.mark.parametrize("prepared", PLACES)
async def test_an_image_cannot_put_something_else_in_its_place(make: Make, shelf: KitShelf, prepared: str) -> None:
    """What an image has at the kit's place, or in the place of its command, is not what runs as the agent."""
    ready = await shelf.get(TINY_PYTHON.agent)
    sandbox = await make()
    await run(sandbox, PLACES[prepared].format(place=KIT_DIR))
    fitted, harbors = await put_into(sandbox, ready)
    assert fitted.is_used and harbors.installed == 0
    said = await run(sandbox, 'export PATH="$HOME/.local/bin:$PATH"; tiny')
    assert '"agent": "tiny"' in said and "hijacked" not in said
    assert digest_of(ready.tree) == ready.kit.digest
    await sandbox.begin_grading()
    await run(sandbox, "touch /tests/x /logs/verifier/x")


async def test_a_command_that_comes_first_all_the_same_is_said(make: Make, shelf: KitShelf) -> None:
    """A task's image may lead its shells anywhere. Then the lock says what was found instead."""
    ready = await shelf.get(TINY_PYTHON.agent)
    sandbox = await make()
    await run(
        sandbox,
        "mkdir -p ~/.nvm /app/bin && cp /bin/true /app/bin/tiny && echo 'export PATH=/app/bin:$PATH' > ~/.nvm/nvm.sh",
    )
    fitted, _ = await put_into(sandbox, ready)
    assert fitted.notes == ["agent kit: the image's own tiny comes first: /app/bin/tiny"]


@pytest.mark.parametrize(
    "variable", ["PYTHONPATH=/app/evil", "PYTHONHOME=/app/evil", "PYTHONSTARTUP=/app/evil/json.py"]
)
async def test_no_module_of_the_task_is_loaded_into_the_agent(make: Make, shelf: KitShelf, variable: str) -> None:
    ready = await shelf.get(TINY_PYTHON.agent)
    sandbox = await make()
    await put_into(sandbox, ready)
    await run(sandbox, "mkdir -p /app/evil && echo 'print(\"hijacked\")' | tee /app/evil/json.py > /app/json.py")
    said = await run(sandbox, f"cd /app && {variable} tiny")
    assert '"agent": "tiny"' in said and "hijacked" not in said


def test_the_shelf_is_readable_by_all_and_writable_by_its_owner(shelf: KitShelf, tmp_path: Path) -> None:
    (ready,) = shelf.ready()
    modes = {path.lstat().st_mode & 0o7022 for path in ready.tree.rglob("*") if not path.is_symlink()}
    assert modes == {0}
