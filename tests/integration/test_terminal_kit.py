"""The terminal kit in a root file system that has a POSIX shell and nothing else: no bash, no libc, no package manager.

Harbor's own ``TmuxSession`` drives it, so what is proven is what terminus-2 does.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path, PurePosixPath

import pytest
from harbor.agents.terminus_2.tmux_session import TmuxSession
from harbor.environments.base import ExecResult

from seatrial.errors import SetupProblem
from seatrial.sandboxes.terminal import recording, terminal
from seatrial.sandboxes.terminal.terminal import KIT_DIR, Terminal, TerminalKit
from seatrial.system.processes import start_time
from tests.recordings import events_of, width_of
from tests.waiting import LIMIT_SEC, eventually

APPLETS = [
    "sh",
    "cat",
    "ls",
    "mkdir",
    "ln",
    "test",
    "base64",
    "rm",
    "clear",
    "grep",
    "printf",
    "sleep",
    "stty",
    "tail",
    "sed",
    "env",
    "head",
    "yes",
    "seq",
    "chmod",
    "touch",
]


class BareRoot:
    """Just enough of a Harbor environment: commands in a namespace of their own on a file system of our making."""

    session_id = "bare"

    def __init__(self, root: Path, cache: Path) -> None:
        self.root = root
        self.terminal = Terminal(cache)
        self.commands: list[str] = []
        self._init: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        for name in ("bin", "proc", "dev", "logs/agent"):
            (self.root / name).mkdir(parents=True)
        busybox = shutil.which("busybox")
        assert busybox, "busybox-static is needed"
        shutil.copy2(busybox, self.root / "bin" / "busybox")
        for applet in APPLETS:
            (self.root / "bin" / applet).symlink_to("busybox")
        root = shlex.quote(str(self.root))
        mounts = (
            f"mount -t proc proc {root}/proc && mount --rbind /dev {root}/dev && "
            f"mount -t devpts devpts {root}/dev/pts -o newinstance,ptmxmode=0666 && "
            f"exec chroot {root} /bin/sleep 600"
        )
        command = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", mounts]
        self._init = subprocess.Popen(command)
        self._pid = _child_of(self._init.pid, "sleep")

    def stop(self) -> None:
        assert self._init is not None
        self._init.kill()
        self._init.wait()

    async def exec(self, command: str, *, user: str | int | None = None, timeout_sec: int | None = None) -> ExecResult:
        if (known := await self.terminal.offer(self, command)) is not None:
            return known
        self.commands.append(command)
        enter = ["nsenter", "-t", str(self._pid), "-m", "-p", "-r", "-w", "/bin/sh", "-c", command]
        process = await asyncio.create_subprocess_exec(
            *enter,
            env={"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        stdout, stderr = await process.communicate()
        return ExecResult(stdout=stdout.decode(), stderr=stderr.decode(), return_code=process.returncode or 0)

    async def lend(self, directory: Path, place: str) -> bool:
        return False

    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        shutil.copytree(source_dir, self.root / target_dir.lstrip("/"), symlinks=True)

    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        shutil.copy2(source_path, self.root / target_path.lstrip("/"))


def _child_of(pid: int, name: str) -> int:
    deadline = time.monotonic() + LIMIT_SEC
    while time.monotonic() < deadline:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        for child in children:
            if Path(f"/proc/{child}/comm").read_text().strip() in (name, "busybox"):
                return int(child)
        time.sleep(0.01)
    raise AssertionError("the bare root did not start")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def bare(tmp_path: Path, cache: Path) -> Iterator[BareRoot]:
    environment = BareRoot(tmp_path / "root", cache)
    environment.start()
    yield environment
    environment.stop()


@pytest.fixture
async def session(bare: BareRoot) -> AsyncIterator[TmuxSession]:
    session = TmuxSession(
        session_name="terminus-2",
        environment=bare,  # type: ignore[arg-type]
        logging_path=PurePosixPath("/logs/agent/terminus_2.pane"),
        local_asciinema_recording_path=None,
        remote_asciinema_recording_path=PurePosixPath("/logs/agent/recording.cast"),
    )
    await session.start()
    path = bare.root / "logs/agent/recording.cast"
    await eventually(lambda: path.exists() and _recorded(path, ""), "the recorder shows its shell")
    yield session
    await bare.exec("tmux kill-server")


async def shown(session: TmuxSession, wanted: str, within: float = LIMIT_SEC) -> str:
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        screen = await session.capture_pane()
        if wanted in screen:
            return screen
        await asyncio.sleep(0.05)
    raise AssertionError(f"{wanted!r} never came to the screen:\n{screen}")


def test_a_kit_is_made_once(tmp_path: Path) -> None:
    first = TerminalKit.prepare(tmp_path)
    stamp = (first.directory / "bin" / "tmux").stat().st_mtime_ns
    second = TerminalKit.prepare(tmp_path)
    assert first == second
    assert (second.directory / "bin" / "tmux").stat().st_mtime_ns == stamp
    assert [path.name for path in (tmp_path / "terminal").iterdir() if path.is_dir()] == [first.directory.name]


def test_without_tmux_on_this_machine_the_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SetupProblem, match="apt-get install tmux"):
        TerminalKit.prepare(tmp_path)


async def test_terminus_finds_tmux_and_installs_nothing(bare: BareRoot, session: TmuxSession) -> None:
    assert not any("install" in command or "which" in command for command in bare.commands)
    result = await bare.exec("tmux -V && asciinema --version")
    assert result.return_code == 0


async def test_the_screen_comes_back_with_its_letters(session: TmuxSession) -> None:
    await session.send_keys(["echo 'gr\u00fc\u00df dich' \u2713; stty size", "Enter"])
    screen = await shown(session, "40 160")
    assert "grüß dich ✓" in screen


async def test_programs_in_the_terminal_inherit_nothing_of_the_kit(session: TmuxSession) -> None:
    await session.send_keys(["env | grep -c -e LOCPATH -e PYTHON -e LD_; echo counted", "Enter"])
    screen = await shown(session, "\ncounted")
    assert "\n0\ncounted" in screen


async def test_long_keys_are_pasted_whole(session: TmuxSession) -> None:
    """Far more than a terminal holds: what is typed and what is echoed must not wait for each other."""
    text = "".join(f"line {number} of a long answer\n" for number in range(6000))
    await session.send_keys(["cat > /logs/agent/long << 'EOF'\n" + text + "EOF\n"])
    await session.send_keys(["echo writ''ten", "Enter"])
    await shown(session, "written", within=LIMIT_SEC)
    written = session.environment.root / "logs/agent/long"  # type: ignore[attr-defined]
    assert written.read_text() == text


async def test_the_recording_plays_with_its_timing(bare: BareRoot, session: TmuxSession) -> None:
    """The time between two outputs lies between what passed from seeing the one until letting the other come, and what
    passed from asking until seeing both. So it does not matter how late anybody was."""
    path = bare.root / "logs/agent/recording.cast"
    asked = time.monotonic()
    await session.send_keys(["echo be''gin; until test -e /logs/go; do sleep 0.1; done; echo fin''ished", "Enter"])
    await eventually(lambda: _recorded(path, "begin"), "the recording has the first output")
    began = time.monotonic()
    await asyncio.sleep(1)
    until_allowed = time.monotonic() - began
    (bare.root / "logs/go").touch()
    await eventually(lambda: _recorded(path, "finished"), "the recording has the second output")
    took = time.monotonic() - asked
    assert width_of(path) == 160
    begin, finished = _recorded(path, "begin")[0], _recorded(path, "finished")[0]
    assert until_allowed - 0.001 < finished - begin < took + 0.001
    assert any(event.kind == "i" for event in events_of(path))


def _recorded(path: Path, text: str) -> list[float]:
    """When this was shown. The last line may be half written."""
    lines = [line for line in path.read_text().splitlines(keepends=True)[1:] if line.endswith("\n")]
    return [at for at, kind, data in map(json.loads, lines) if kind == "o" and text in data]


async def test_the_recording_is_valid_after_a_kill(bare: BareRoot, session: TmuxSession) -> None:
    await session.send_keys(["seq 1 1000000", "Enter"])
    path = bare.root / "logs/agent/recording.cast"
    await eventually(lambda: path.stat().st_size > 20_000, "a part of it is recorded")
    killed = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if b"recorder.py" in (process / "cmdline").read_bytes() and _inside(bare, process):
                os.kill(int(process.name), signal.SIGKILL)
                killed.append(process.name)
        except (FileNotFoundError, ProcessLookupError):
            continue
    assert killed
    await eventually(lambda: all(start_time(pid) is None for pid in killed), "its last write has ended")
    recording.repair_recording(path)
    events = events_of(path)
    assert sum(len(event.data) for event in events) > 1000


def _inside(bare: BareRoot, process: Path) -> bool:
    return (process / "ns/pid").readlink() == Path(f"/proc/{bare._pid}/ns/pid").readlink()


async def test_a_recording_begins_anew_when_its_directory_was_emptied(bare: BareRoot, session: TmuxSession) -> None:
    path = bare.root / "logs/agent/recording.cast"
    path.unlink()
    await session.send_keys(["echo second st''ep", "Enter"])
    await eventually(lambda: path.exists() and "second step" in path.read_text(), "it is recorded in a new file")
    assert any("second step" in event.data for event in events_of(path))


def test_a_torn_last_line_is_mended_and_a_whole_one_left(tmp_path: Path) -> None:
    whole = json.dumps({"version": 2, "width": 80, "height": 24}) + '\n[0.5, "o", "x"]\n'
    path = tmp_path / "recording.cast"
    path.write_text(whole + '[0.7, "o", "torn')
    assert recording.repair_recording(path)
    assert path.read_text() == whole
    assert not recording.repair_recording(path)
    assert path.read_text() == whole


async def test_an_image_with_its_own_tools_keeps_them(bare: BareRoot) -> None:
    own = bare.root / "usr/local/bin"
    own.mkdir(parents=True)
    for name in ("tmux", "asciinema"):
        (own / name).write_text("#!/bin/sh\necho the image has its own\n")
        (own / name).chmod(0o755)
    result = await bare.exec(terminal.PROBE)
    assert result.stdout == "the image has its own\n"
    assert not (own / "bash").exists()
    assert (bare.root / "bin/bash").readlink() == Path(KIT_DIR / "bin/bash")


async def test_nothing_appears_before_somebody_asks(bare: BareRoot) -> None:
    assert (await bare.exec("tmux list-sessions")).return_code == 127
    assert not (bare.root / "usr").exists()
    assert not (bare.root / "opt").exists()
