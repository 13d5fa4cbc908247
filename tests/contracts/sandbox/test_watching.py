"""What is being written in a running sandbox can be looked at from outside, and nothing of this machine with it."""

from __future__ import annotations

from pathlib import Path

from harbor.environments.base import BaseEnvironment

from seatrial.engine.live.tail import is_shown
from seatrial.sandboxes.sandbox import Sandbox
from tests.contracts.sandbox.conftest import MakeSandbox
from tests.contracts.sandbox.test_grading import PREPARE


async def _look(sandbox: BaseEnvironment, **seen: int) -> dict[str, bytes] | None:
    assert isinstance(sandbox, Sandbox)
    known = {name.replace("__", "/").replace("_dot_", "."): offset for name, offset in seen.items()}
    found = await sandbox.look(known, is_shown)
    return None if found is None else {glimpse.name: glimpse.data for glimpse in found}


async def test_output_is_seen_while_it_is_written(make_sandbox: MakeSandbox, tmp_path: Path) -> None:
    sandbox = await make_sandbox()
    await sandbox.exec(f"{PREPARE}; echo one > /logs/agent/log.txt; echo '{{}}' > /logs/agent/recording.cast")
    assert await _look(sandbox) == {"agent/log.txt": b"one\n", "agent/recording.cast": b"{}\n"}
    await sandbox.exec("echo two >> /logs/agent/log.txt")
    assert await _look(sandbox, agent__log_dot_txt=4, agent__recording_dot_cast=3) == {
        "agent/log.txt": b"two\n",
        "agent/recording.cast": b"",
    }
    (tmp_path / "tests").mkdir()
    await sandbox.upload_dir(source_dir=tmp_path / "tests", target_dir="/tests")
    await sandbox.exec("echo judged > /logs/verifier/test-stdout.txt")
    seen = await _look(sandbox, agent__log_dot_txt=8)
    assert seen is not None
    assert (seen["verifier/test-stdout.txt"], seen["agent/log.txt"]) == (b"judged\n", b"")


async def test_looking_follows_no_link_and_waits_for_no_pipe(make_sandbox: MakeSandbox, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("of this machine")
    sandbox = await make_sandbox()
    await sandbox.exec(
        f"{PREPARE}; cd /logs/agent; ln -s {secret} link.txt; ln -s /etc/passwd inside.txt; mkfifo pipe.txt; "
        "mkdir dir.txt; echo plain > plain.txt"
    )
    assert await _look(sandbox) == {"agent/plain.txt": b"plain\n"}
    await sandbox.exec(f"rm -r /logs/agent; ln -s {tmp_path} /logs/agent")
    assert not await _look(sandbox)


async def test_a_sandbox_that_is_gone_shows_nothing(make_sandbox: MakeSandbox) -> None:
    sandbox = await make_sandbox()
    await sandbox.exec(f"{PREPARE}; echo one > /logs/agent/log.txt")
    assert await _look(sandbox)
    await sandbox.stop(delete=True)
    assert not await _look(sandbox)
