"""Which changes are marked, from names and contents alone."""

from __future__ import annotations

import pytest

from seatrial.sandboxes.suspicion import SearchPath, SuspectPaths

SEARCH = SearchPath.of("/usr/local/bin:/usr/bin")
IMAGE = {"/usr/bin/grep": b"the image's", "/etc/profile": b"umask 022\n"}
CODE = b"import os\n"
SITE = "/usr/lib/python3/dist-packages"


def marks(changed: dict[str, bytes]) -> tuple[str, ...]:
    suspects = SuspectPaths.among(changed, SEARCH).with_contents(changed, SEARCH)
    return suspects.marks({path: IMAGE[path] for path in suspects.compared_with if path in IMAGE})


@pytest.mark.parametrize(
    ("path", "content", "mark"),
    [
        ("/usr/local/bin/grep", b"exit 0", "suspect_path"),
        ("/usr/bin/grep", b"exit 0", "suspect_path"),
        ("/usr/local/bin/grep", b"-> /bin/true", "suspect_path"),
        (f"{SITE}/sitecustomize.py", CODE, "suspect_python"),
        (f"{SITE}/x.pth", CODE, "suspect_python"),
        ("/home/somebody/.local/lib/python3.11/site-packages/usercustomize.py", CODE, "suspect_python"),
        ("/opt/venv/lib/python3.12/site-packages/x.pth", CODE, "suspect_python"),
        ("/etc/profile", b"exit\n", "suspect_shell"),
        ("/etc/profile.d/new.sh", b"", "suspect_shell"),
        ("/root/.bashrc", b"", "suspect_shell"),
    ],
)
def test_marked(path: str, content: bytes, mark: str) -> None:
    assert marks({path: content}) == (mark,)


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("/usr/bin/grep", b"the image's"),
        ("/usr/local/bin/grep", b"the image's"),
        ("/usr/local/bin/jq", b"a tool that the image did not have"),
        ("/app/bin/grep", b"on no search path"),
        ("/usr/bin/my-grep", b"another name"),
        (f"{SITE}/editable.pth", b"/src\n"),
        (f"{SITE}/distutils-precedence.pth", CODE),
        ("/app/sitecustomize.py", CODE),
        ("/etc/profile", b"umask 022\n"),
        ("/etc/profile.d/deeper/x.sh", b""),
        ("/app/.bashrc", b""),
    ],
)
def test_not_marked(path: str, content: bytes) -> None:
    assert marks({path: content}) == ()


def test_what_is_gone_since_is_not_marked() -> None:
    paths = SuspectPaths.among(["/etc/profile", "/root/.bashrc"], SEARCH)
    assert not paths.with_contents({}, SEARCH)
    assert paths.all == {"/etc/profile", "/root/.bashrc"}


def test_marks_come_together() -> None:
    changed = {"/root/.bashrc": b"", "/usr/local/bin/grep": b"", f"{SITE}/sitecustomize.py": b""}
    assert marks(changed) == ("suspect_path", "suspect_python", "suspect_shell")
