"""Commands: exit status, output, working directory, environment, user."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from harbor.environments.base import BaseEnvironment

from tests.contracts.sandbox.conftest import MakeSandbox
from tests.contracts.sandbox.kinds import Wish
from tests.waiting import LIMIT_SEC

MEGABYTE = 1024 * 1024
HANG_SEC = round(LIMIT_SEC)


@pytest.mark.parametrize("status", [0, 1, 42, 126, 127, 137, 255])
async def test_exit_status(sandbox: BaseEnvironment, status: int) -> None:
    assert (await sandbox.exec(f"exit {status}")).return_code == status


async def test_status_of_a_killed_command(sandbox: BaseEnvironment) -> None:
    """A command that dies of a signal has the status that a shell would give."""
    assert (await sandbox.exec("kill -9 $$")).return_code == 137
    assert (await sandbox.exec("kill -TERM $$")).return_code == 143


async def test_unknown_command(sandbox: BaseEnvironment) -> None:
    assert (await sandbox.exec("no-such-command-here")).return_code == 127


async def test_stdout(sandbox: BaseEnvironment) -> None:
    result = await sandbox.exec("printf 'one\\ntwo'")
    assert (result.stdout, result.stderr or "") == ("one\ntwo", "")


async def test_stderr_is_kept_apart(sandbox: BaseEnvironment) -> None:
    result = await sandbox.exec("echo out; echo err >&2; echo more")
    assert result.stdout == "out\nmore\n"
    assert result.stderr == "err\n"


async def test_no_output(sandbox: BaseEnvironment) -> None:
    result = await sandbox.exec("true")
    assert not result.stdout and not result.stderr


async def test_shell_is_bash(sandbox: BaseEnvironment) -> None:
    result = await sandbox.exec("list=(a b c); [[ ${#list[@]} == 3 ]] && echo ${list[-1]}")
    assert (result.stdout or "").strip() == "c"


async def test_command_text_arrives_unchanged(sandbox: BaseEnvironment) -> None:
    text = "quote ' double \" dollar $HOME back \\ tick ` star * ümläut 漢字 \t end"
    result = await sandbox.exec(f"cat <<'EOF'\n{text}\nEOF\n")
    assert result.stdout == f"{text}\n"


async def test_stdin_is_empty(sandbox: BaseEnvironment) -> None:
    """A command that reads finds the end at once instead of waiting for ever."""
    result = await sandbox.exec("cat; echo done", timeout_sec=HANG_SEC)
    assert (result.stdout or "").strip() == "done"


async def test_megabytes_without_a_newline(sandbox: BaseEnvironment) -> None:
    result = await sandbox.exec(f"head -c {3 * MEGABYTE} /dev/zero | tr '\\0' x", timeout_sec=HANG_SEC)
    assert result.stdout == "x" * (3 * MEGABYTE)


async def test_output_is_bounded(sandbox: BaseEnvironment) -> None:
    """Head and tail are kept, what lies between is said to be missing, and this process does not grow by it."""
    Path("/proc/self/clear_refs").write_text("5")
    before = _peak()
    command = f"echo first; head -c {96 * MEGABYTE} /dev/zero | tr '\\0' x; echo; echo last"
    result = await sandbox.exec(command, timeout_sec=HANG_SEC)
    assert result.return_code == 0
    output = result.stdout or ""
    assert output.startswith("first\nxxx") and output.endswith("xxx\nlast\n")
    assert len(output) <= 9 * MEGABYTE
    assert "left out" in output
    assert _peak() - before <= 64 * MEGABYTE


def _peak() -> int:
    status = Path("/proc/self/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) * 1024


async def test_binary_output(sandbox: BaseEnvironment) -> None:
    result = await sandbox.exec("printf 'a\\377\\376\\000b'; printf '\\342\\202'")
    output = result.stdout or ""
    assert output.startswith("a") and "b" in output


async def test_characters_split_between_pieces(sandbox: BaseEnvironment) -> None:
    result = await sandbox.exec("printf '\\342'; sleep 0.2; printf '\\202\\254'")
    assert result.stdout == "€"


async def test_default_directory_is_the_image_s(sandbox: BaseEnvironment) -> None:
    assert ((await sandbox.exec("pwd")).stdout or "").strip() == "/app"


async def test_directory_of_the_command(sandbox: BaseEnvironment) -> None:
    assert ((await sandbox.exec("pwd", cwd="/usr/lib")).stdout or "").strip() == "/usr/lib"


async def test_directory_of_the_task(make_sandbox: MakeSandbox) -> None:
    sandbox = await make_sandbox(Wish(workdir="/srv"))
    assert ((await sandbox.exec("pwd")).stdout or "").strip() == "/srv"
    assert ((await sandbox.exec("pwd", cwd="/")).stdout or "").strip() == "/"


async def test_environment(sandbox: BaseEnvironment) -> None:
    """Image, task, job and command, the later winning over the earlier."""
    show = 'echo "$FROM_IMAGE|$FROM_TASK|$FROM_JOB|$OVERRIDDEN"'
    assert (await sandbox.exec(show)).stdout == "of the image|of the task|of the job|task\n"
    result = await sandbox.exec(show, env={"OVERRIDDEN": "command", "FROM_JOB": "again"})
    assert result.stdout == "of the image|of the task|again|command\n"


async def test_values_arrive_unchanged(sandbox: BaseEnvironment) -> None:
    value = "a 'b' \"c\" $d `e` \\f\ng=h ü"
    result = await sandbox.exec('printf %s "$ODD"', env={"ODD": value})
    assert result.stdout == value


async def test_path_is_usable(sandbox: BaseEnvironment) -> None:
    assert (await sandbox.exec("command -v ls && command -v useradd")).return_code == 0


async def test_default_user_is_root(sandbox: BaseEnvironment) -> None:
    assert ((await sandbox.exec("id -un; id -u")).stdout or "").split() == ["root", "0"]


@pytest.mark.parametrize("user", ["agent", 1234, "1234"])
async def test_user(sandbox: BaseEnvironment, user: str | int) -> None:
    result = await sandbox.exec("id -un; id -u; id -gn; echo $HOME; touch /root/x 2>&1 || echo refused", user=user)
    assert (result.stdout or "").split("\n")[:4] == ["agent", "1234", "agent", "/home/agent"]
    assert "refused" in (result.stdout or "")


async def test_unnamed_uid(sandbox: BaseEnvironment) -> None:
    assert ((await sandbox.exec("id -u", user=4321)).stdout or "").strip() == "4321"


async def test_default_user_of_the_phase(sandbox: BaseEnvironment) -> None:
    with sandbox.with_default_user("agent"):
        assert ((await sandbox.exec("id -un")).stdout or "").strip() == "agent"
        assert ((await sandbox.exec("id -un", user="root")).stdout or "").strip() == "root"
    assert ((await sandbox.exec("id -un")).stdout or "").strip() == "root"


async def test_unknown_user_is_an_error(sandbox: BaseEnvironment) -> None:
    try:
        result = await sandbox.exec("true", user="nobody-of-that-name")
    except Exception as error:
        assert "nobody-of-that-name" in str(error)
    else:
        assert result.return_code != 0


async def test_commands_run_side_by_side(sandbox: BaseEnvironment) -> None:
    """Each waits for the other's file: one after another they would never end."""
    await sandbox.exec("rm -rf /tmp/meet; mkdir -p /tmp/meet")
    commands = [
        f"touch /tmp/meet/{me}; until [ -e /tmp/meet/{other} ]; do sleep 0.05; done; echo {me}"
        for me, other in (("a", "b"), ("b", "a"))
    ]
    results = await asyncio.gather(*(sandbox.exec(command, timeout_sec=HANG_SEC) for command in commands))
    assert [(result.stdout or "").strip() for result in results] == ["a", "b"]


async def test_many_commands_keep_their_output_apart(sandbox: BaseEnvironment) -> None:
    results = await asyncio.gather(*(sandbox.exec(f"echo {n}; exit {n}") for n in range(8)))
    assert [(result.stdout, result.return_code) for result in results] == [(f"{n}\n", n) for n in range(8)]


async def test_output_streams_while_the_command_runs(sandbox: BaseEnvironment) -> None:
    pieces: list[str] = []
    seen = asyncio.Event()

    async def listen(text: str, stream: str) -> None:
        pieces.append(text)
        if "early" in "".join(pieces):
            seen.set()

    await sandbox.exec("rm -f /tmp/go-on")
    with sandbox.scoped_output_callback(listen):
        command = "echo early; until [ -e /tmp/go-on ]; do sleep 0.05; done; echo late"
        running = asyncio.create_task(sandbox.exec(command, timeout_sec=2 * HANG_SEC))
    await asyncio.wait_for(seen.wait(), LIMIT_SEC)
    assert not running.done()
    await sandbox.exec("touch /tmp/go-on")
    result = await running
    assert "".join(pieces) == result.stdout == "early\nlate\n"
