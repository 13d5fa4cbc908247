"""Plain tmux commands without a process have the results that tmux's own client gives, to the byte."""

from __future__ import annotations

import asyncio
import shlex
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from harbor.environments.base import ExecResult

from seatrial.sandboxes.oci.environment import OciEnvironment
from seatrial.sandboxes.own_processes import OwnProcessesKilled
from tests.engine_fixture import image_cache
from tests.trials import Workplace
from tests.waiting import LIMIT_SEC

__all__ = ["image_cache"]

pytestmark = [pytest.mark.sandbox, pytest.mark.asyncio(loop_scope="module")]

START = (
    "export TERM=xterm-256color && tmux new-session -x 160 -y 40 -d -s {name} 'bash --norc' "
    "&& tmux set-option -g history-limit 10000000"
)
SAME = [
    "tmux has-session -t direct",
    "tmux has-session -t nobody",
    "tmux has-session -t 'a b; c'",
    "tmux has-session -t 'grüß'",
    "tmux has-session",
    "tmux has-session -z",
    "tmux capture-pane -p -t direct",
    "tmux capture-pane -p -S - -t direct",
    "tmux capture-pane -p -S - -E - -e -J -t direct",
    "tmux capture-pane -p -t nobody",
    "tmux capture-pane -p -t direct:7",
    "tmux capture-pane",
    "tmux set-option -g history-limit 10000000",
    "tmux set-option -g history-limit never",
    "tmux set-option -g no-such-option 1",
    "tmux set-option -gq no-such-option 1",
    "tmux send-keys -t direct -X begin",
    "tmux send-keys",
    "tmux send-keys -t direct -N never x",
]
KEYS = [
    ["plain text"],
    ["grüß dich ✓ 日本語 🙂"],
    ["C-a", "C-c", "M-x", "Up", "F5", "BSpace", "Tab", "Escape", "Home", "^C", "PageDown"],
    ["it's", '"quoted"', "$HOME `id` \\ \\033 #{pid} %end 1 2 3 ~ { } ~/x"],
    ["line one\nline two\ttabbed\n"],
    ["%begin 1700000000 1 1\n%end 1700000000 1 1\n%exit\n"],
    ["-l", "-t", "--", "-X"],
    ["x" * 9000],
    [""],
    ["semi;colon", "a;b"],
    ["\x01\x1b[31m"],
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sandbox(tmp_path_factory: pytest.TempPathFactory, image_cache: Path) -> AsyncIterator[OciEnvironment]:
    sandbox = Workplace(tmp_path_factory.mktemp("line"), image_cache).sandbox()
    assert isinstance(sandbox, OciEnvironment)
    await sandbox.start(force_build=False)
    assert (await sandbox.exec("tmux -V")).return_code == 0
    for name in ("direct", "client"):
        assert (await sandbox.exec(START.format(name=name))).return_code == 0
        await shown(sandbox, name, "bash-")  # from now on the screen stays as it is
    yield sandbox
    await sandbox.stop(delete=True)


async def directly(sandbox: OciEnvironment, command: str) -> ExecResult:
    assert sandbox._line is not None
    before = sandbox._line.answers
    result = await sandbox.exec(command)
    assert sandbox._line.answers == before + 1, f"{command!r} was run as a process"
    return result


async def by_client(sandbox: OciEnvironment, command: str) -> ExecResult:
    """A trailing space is nothing to the shell, and makes the command one that is not plain."""
    assert sandbox._line is not None
    before = sandbox._line.answers
    result = await sandbox.exec(f"{command} ")
    assert sandbox._line.answers == before
    return result


@pytest.mark.parametrize("command", SAME)
async def test_results_are_those_of_tmux(sandbox: OciEnvironment, command: str) -> None:
    assert await directly(sandbox, command) == await by_client(sandbox, command)


async def test_keys_for_a_terminal_that_is_gone_end_the_attempt(sandbox: OciEnvironment) -> None:
    for way in (directly, by_client):
        with pytest.raises(OwnProcessesKilled):
            await way(sandbox, "tmux send-keys -t nobody -- x")


async def shown(sandbox: OciEnvironment, session: str, wanted: str) -> str:
    until = time.monotonic() + LIMIT_SEC
    while time.monotonic() < until:
        screen = (await by_client(sandbox, f"tmux capture-pane -p -S - -t {session}")).stdout or ""
        if wanted in screen:
            return screen
        await asyncio.sleep(0.05)
    raise AssertionError(f"{wanted} never came to the screen:\n{screen}")


async def test_keys_arrive_as_those_of_tmux(sandbox: OciEnvironment) -> None:
    """Each terminal shows what was typed into it, control characters by their names."""
    for session in ("direct", "client"):
        await by_client(sandbox, f"tmux respawn-pane -k -t {session} 'stty raw -echo; echo READY; exec cat -v'")
        await shown(sandbox, session, "READY")
    for keys in KEYS:
        words = " ".join(shlex.quote(key) for key in keys)
        assert await directly(sandbox, f"tmux send-keys -t direct -- {words}") == await by_client(
            sandbox, f"tmux send-keys -t client -- {words}"
        )
    for session in ("direct", "client"):
        await by_client(sandbox, f"tmux send-keys -t {session} -- THEEND")
    seen = [await shown(sandbox, session, "THEEND") for session in ("direct", "client")]
    assert seen[0] == seen[1]
    assert "grM-C" in seen[0] and "%exit" in seen[0] and "^[[31m" in seen[0]
    # and the screen itself, which is full of what looks like a protocol
    screens = [await way(sandbox, "tmux capture-pane -p -S - -t direct") for way in (directly, by_client)]
    assert screens[0] == screens[1] and "%end 1700000000" in (screens[0].stdout or "")


async def test_a_long_history_is_whole(sandbox: OciEnvironment) -> None:
    await by_client(sandbox, "tmux respawn-pane -k -t direct 'seq 1 30000; echo grüß; exec sleep 600'")
    await shown(sandbox, "direct", "grüß")
    results = [await way(sandbox, "tmux capture-pane -p -S - -t direct") for way in (directly, by_client)]
    assert results[0] == results[1] and "\n29999\n30000\ngrüß\n" in (results[0].stdout or "")


async def test_nobody_sees_that_it_was_there(sandbox: OciEnvironment) -> None:
    await directly(sandbox, "tmux has-session -t direct")
    attached = await sandbox.exec("tmux list-sessions -F '#{session_name} #{session_attached}'; tmux list-clients")
    assert attached.stdout == "client 0\ndirect 0\n"


@pytest.mark.parametrize(
    "command",
    [
        "tmux capture-pane -p -t direct | cat",
        "tmux capture-pane -p -t $NAME",
        "tmux send-keys -t direct -- 'x;'",
        "tmux send-keys -t direct x ; tmux ls",
        "tmux kill-session -t nobody",
        "tmux -L other has-session",
        "tmux",
        "tmux capture-pane -p -t 'direct",
        f"tmux send-keys -t client -- {'x' * 16300}",
        f"tmux send-keys -t client -- {'ü' * 8100}",
    ],
)
async def test_anything_else_is_run(sandbox: OciEnvironment, command: str) -> None:
    assert sandbox._line is not None
    before = sandbox._line.answers
    await sandbox.exec(command)
    assert sandbox._line.answers == before


async def test_another_place_of_the_server_is_left_to_tmux(sandbox: OciEnvironment) -> None:
    assert sandbox._line is not None
    before = sandbox._line.answers
    for env in ({"TMUX_TMPDIR": "/app"}, {"TMUX": "/app/none,1,0"}):
        result = await sandbox.exec("tmux has-session -t direct", env=env)
        assert result.return_code == 1 and "/app" in (result.stderr or "")
    assert sandbox._line.answers == before


async def test_other_users_have_other_servers(sandbox: OciEnvironment) -> None:
    started = await sandbox.exec("tmux new-session -d -s theirs", user="agent")
    assert started.return_code == 0, started.stderr
    assert sandbox._line is not None
    before = sandbox._line.answers
    assert (await sandbox.exec("tmux has-session -t theirs", user="agent")).return_code == 0
    assert (await sandbox.exec("tmux has-session -t direct", user="agent")).return_code == 1
    assert (await sandbox.exec("tmux has-session -t theirs")).return_code == 1
    assert sandbox._line.answers == before + 3
