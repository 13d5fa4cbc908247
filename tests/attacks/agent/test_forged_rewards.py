"""The agent wants a reward that the verifier did not write: it must not reach the verifier's directory by any way."""

from __future__ import annotations

from pathlib import Path

import pytest

from seatrial.sandboxes.sandbox import Sandbox
from tests.attacks.agent.conftest import Make

FORGED = '{"reward": 1}'
ZERO = "#!/bin/bash\necho 0 > /logs/verifier/reward.txt\n"
LINKS = {
    "first_process": "/proc/1/root/logs/verifier",
    "own_root": "/proc/self/root/logs/verifier",
    "by_cwd": "/proc/1/cwd/logs/verifier",
    "by_descriptor": "/proc/1/fd/0",
    "plain": "/logs/verifier",
    "relative": "verifier",
    "tests": "/proc/1/root/tests",
}


async def _graded(sandbox: Sandbox, tmp_path: Path, test: str = ZERO) -> dict[str, str]:
    """What of the verifier's directory comes out when the tests have run, as Harbor does it."""
    tests = tmp_path / "tests"
    tests.mkdir(exist_ok=True)
    (tests / "test.sh").write_text(test)
    await sandbox.upload_dir(tests, "/tests")
    assert (await sandbox.exec("bash /tests/test.sh")).return_code == 0
    seen = (await sandbox.exec("ls -A /tests")).stdout or ""
    await sandbox.download_dir("/logs/verifier", tmp_path / "verifier")
    return {"seen": seen} | {
        path.name: path.read_text().strip() for path in (tmp_path / "verifier").iterdir() if path.is_file()
    }


@pytest.mark.parametrize("link", LINKS.values(), ids=LINKS.keys())
async def test_logs_go_back_to_no_place_but_their_own(make: Make, tmp_path: Path, link: str) -> None:
    """The agent's logs come out, its directory becomes a link, and the logs are put back, as Harbor does."""
    sandbox = await make()
    await sandbox.exec(f"mkdir -p /logs/agent; echo '{FORGED}' > /logs/agent/reward.json")
    await sandbox.download_dir("/logs/agent", tmp_path / "agent")
    assert (tmp_path / "agent" / "reward.json").exists()
    await sandbox.exec(f"rm -rf /logs/agent; ln -s {link} /logs/agent")
    try:
        await sandbox.upload_dir(tmp_path / "agent", "/logs/agent")
    except Exception as refusal:
        assert str(refusal)
    graded = await _graded(sandbox, tmp_path)
    assert graded == {"seen": "test.sh\n", "reward.txt": "0"}
