"""An upload that fails because of this machine is a fault of the sandbox; one that the agent spoils is the agent's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from seatrial.adapters.causes import cause_of
from seatrial.domain.trial import Cause, Phase
from tests.workplace_fixture import Make


async def _cause(upload: object) -> Cause:
    with pytest.raises(Exception, match=r".") as raised:
        await upload  # type: ignore[misc]
    return cause_of(type(raised.value).__name__, str(raised.value), Phase.AGENT)


async def test_faults_of_uploads(make: Make, tmp_path: Path) -> None:
    sandbox = await make()
    odd = tmp_path / "odd"
    odd.mkdir()
    os.mkfifo(odd / "fifo")
    assert await _cause(sandbox.upload_dir(tmp_path / "missing", "/app/x")) is Cause.SANDBOX
    assert await _cause(sandbox.upload_file(tmp_path / "missing", "/app/x")) is Cause.SANDBOX
    assert await _cause(sandbox.upload_dir(odd, "/app/x")) is Cause.SANDBOX


async def test_agent_cannot_make_its_attempt_a_fault_of_ours(make: Make, tmp_path: Path) -> None:
    sandbox = await make()
    good = tmp_path / "good"
    (good / "sub").mkdir(parents=True)
    (good / "sub" / "file").write_text("text")
    await sandbox.upload_dir(good, "/app/good")
    assert (await sandbox.exec("cat /app/good/sub/file")).stdout == "text"
    await sandbox.exec("rm -rf /app/good; ln -s good /app/good; echo > /app/file")
    assert await _cause(sandbox.upload_dir(good, "/app/good")) is Cause.AGENT
    assert await _cause(sandbox.upload_dir(good, "/app/file/below")) is Cause.AGENT
