"""House rules that keep privileged access to a sandbox's files in one place: checked in the source itself."""

from __future__ import annotations

import ast
import os
from pathlib import Path

import pytest

from seatrial.sandboxes.host.accounts import UnknownUser, find_account
from seatrial.sandboxes.host.in_root import SandboxRoot

SOURCE = Path(__file__).parents[4] / "src" / "seatrial"
ENTERING = {
    "inside": {"private_mounts.py", "pod.py", "view.py"},
    "rooted": {"private_mounts.py", "pod_directory.py"},
}
"""Who may have a thread see what a sandbox sees: to open its root, to mount, and to lay out a root nobody runs in."""
BY_DESCRIPTOR = ("host/transfer.py", "host/tree_copy.py", "host/in_root.py", "host/accounts.py")
FOLLOWS_NAMES = {"chdir", "chroot", "rmtree", "copytree", "copyfile", "walk", "glob", "rglob", "realpath", "resolve"}


def _calls(path: Path) -> list[tuple[str, int]]:
    tree = ast.parse(path.read_text())
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [
        (node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", ""), node.lineno)
        for node in calls
    ]


def test_few_enter_a_sandbox() -> None:
    for name, allowed in ENTERING.items():
        knowing = (path for path in (SOURCE / "sandboxes").rglob("*.py") if "mounts." in path.read_text())
        found = {path.name for path in knowing if any(call == name for call, _ in _calls(path))}
        assert found <= allowed, f"{found - allowed} should ask PrivateMounts.root_of for a descriptor"


def test_files_of_sandboxes_are_reached_by_descriptor() -> None:
    for place in BY_DESCRIPTOR:
        found = [call for call in _calls(SOURCE / "sandboxes" / place) if call[0] in FOLLOWS_NAMES]
        assert not found, f"{place}: {found}"


def test_trees_are_removed_in_one_way() -> None:
    found = [
        path
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr == "rmtree"
    ]
    assert not found, "seatrial.system.removal.remove_tree survives every tree"


@pytest.mark.parametrize("kind", ["pipe", "endless", "outside", "file"])
def test_account_files_are_only_read_as_files(tmp_path: Path, kind: str) -> None:
    """A pipe would be waited for, and this machine's own file is none of the sandbox's."""
    passwd = tmp_path / "etc" / "passwd"
    passwd.parent.mkdir()
    match kind:
        case "pipe":
            os.mkfifo(passwd)
        case "endless":
            passwd.symlink_to("/dev/zero")
        case "outside":
            passwd.symlink_to("../../../../../../etc/passwd")
        case "file":
            passwd.write_text("root:x:7:8::/home:/bin/sh\n")
    root = os.open(tmp_path, os.O_PATH | os.O_DIRECTORY)
    try:
        if kind == "file":
            assert find_account(SandboxRoot(root), "root").identity == (7, 8, ())
        else:
            with pytest.raises(UnknownUser):
                find_account(SandboxRoot(root), "root")
    finally:
        os.close(root)
