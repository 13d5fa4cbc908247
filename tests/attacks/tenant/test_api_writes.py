"""Whoever takes over the API's process writes to its own folders only, although it may have the user id of root."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

_PROGRAM = """
import json, os, signal, sys
from pathlib import Path
from seatrial.system.privileges import confine_api
inside, outside, victim = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
kept = confine_api(writable=[inside]).kept
def outcome(work):
    try:
        work()
    except OSError as error:
        return error.strerror
    return "done"
def attempts(place):
    return {
        "make": lambda: (place / "made").write_text("x"),
        "overwrite": lambda: (place / "file").open("r+").write("x"),
        "truncate": lambda: os.truncate(place / "file", 0),
        "append": lambda: (place / "file").open("a").write("x"),
        "make a folder": lambda: (place / "folder").mkdir(),
        "make a link": lambda: (place / "link").symlink_to("/etc"),
        "make a hard link": lambda: os.link(place / "file", place / "second"),
        "rename": lambda: (place / "file").rename(place / "renamed"),
        "remove": lambda: (place / "other").unlink(),
    }
found = {}
for name, place in (("inside", inside), ("outside", outside)):
    found[name] = {what: outcome(work) for what, work in attempts(place).items()}
found["moved out"] = outcome(lambda: (inside / "made").rename(outside / "moved"))
found["moved in"] = outcome(lambda: (outside / "kept").rename(inside / "kept"))
found["null"] = outcome(lambda: open("/dev/null", "w").write("x"))
found["read"] = outcome(lambda: (outside / "kept").read_text())
found["signal"] = outcome(lambda: os.kill(victim, signal.SIGCONT))
found["own signal"] = outcome(lambda: os.kill(os.getpid(), signal.SIGCONT))
print(json.dumps({"kept": kept, **found}))
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    inside, outside = tmp_path_factory.mktemp("inside"), tmp_path_factory.mktemp("outside")
    for place in (inside, outside):
        for name in ("file", "other"):
            (place / name).write_text("before")
    (outside / "kept").write_text("before")
    command = [sys.executable, "-c", _PROGRAM, str(inside), str(outside), str(os.getpid())]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert signal.getsignal(signal.SIGCONT) is signal.SIG_DFL
    result: dict[str, object] = json.loads(done.stdout)
    result["left outside"] = sorted(place.name for place in outside.iterdir())
    result["content outside"] = (outside / "file").read_text()
    return result


WAYS = [
    "make",
    "overwrite",
    "truncate",
    "append",
    "make a folder",
    "make a link",
    "make a hard link",
    "rename",
    "remove",
]


@pytest.mark.parametrize("way", WAYS)
def test_nothing_is_changed_outside(found: dict[str, dict[str, str]], way: str) -> None:
    assert found["outside"][way] != "done"


@pytest.mark.parametrize("way", WAYS)
def test_its_own_folders_are_its_own(found: dict[str, dict[str, str]], way: str) -> None:
    assert found["inside"][way] == "done"


def test_nothing_is_moved_across(found: dict[str, object]) -> None:
    assert found["moved out"] != "done"
    assert found["moved in"] != "done"
    assert found["left outside"] == ["file", "kept", "other"]
    assert found["content outside"] == "before"


def test_no_signal_reaches_another_process(found: dict[str, object]) -> None:
    assert found["signal"] != "done"
    assert found["own signal"] == "done"


def test_reading_and_devices_go_on(found: dict[str, object]) -> None:
    assert found["read"] == "done"
    assert found["null"] == "done"
    assert found["kept"] == [], "the machine knows every means"


def test_the_service_writes_where_its_settings_say(tmp_path: Path) -> None:
    from seatrial.service import _writable
    from seatrial.settings import Settings

    (tmp_path / "files").mkdir()
    (tmp_path / "elsewhere").mkdir()
    settings = Settings(
        home=tmp_path, database_url=f"sqlite:///{tmp_path}/elsewhere/s.db", blobs_url=f"file://{tmp_path}/files"
    )
    assert {tmp_path, tmp_path / "elsewhere", tmp_path / "files"} <= set(_writable(settings))
