"""The agent wants a reward that the verifier did not write: it must not reach the verifier's directory by any way."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from seatrial.sandboxes.sandbox import Sandbox
from tests.trials import Workplace
from tests.workplace_fixture import Make

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
SWAPPER = r"""
mkdir -p /logs/agent; echo '{"reward": 1}' > /logs/agent/reward.json
ln -sfn /proc/1/root/logs/verifier /logs/swapped
cat > /swap.pl <<'END'
my ($a, $b) = ("/logs/agent\0", "/logs/swapped\0");
syscall(316, -100, $a, -100, $b, 2) while 1;
END
setsid perl /swap.pl > /dev/null 2>&1 < /dev/null &
"""


async def _graded(sandbox: Sandbox, tmp_path: Path, test: str = ZERO) -> dict[str, str]:
    """What of the verifier's directory comes out when the tests have run, as Harbor does it."""
    tests, verifier = tmp_path / "tests", tmp_path / "verifier"
    tests.mkdir(parents=True, exist_ok=True)
    (tests / "test.sh").write_text(test)
    await sandbox.upload_dir(tests, "/tests")
    assert (await sandbox.exec("bash /tests/test.sh", timeout_sec=60)).return_code == 0
    assert (await sandbox.exec("ls -A /tests")).stdout == "test.sh\n"
    await sandbox.download_dir("/logs/verifier", verifier)
    return {path.name: path.read_text().strip() for path in verifier.iterdir() if path.is_file()}


async def _attempted(transfer: object) -> None:
    """Refusing is as good as containing."""
    try:
        await transfer  # type: ignore[misc]
    except Exception as refusal:
        assert str(refusal)


@pytest.mark.parametrize("link", LINKS.values(), ids=LINKS.keys())
async def test_logs_go_back_to_no_place_but_their_own(make: Make, tmp_path: Path, link: str) -> None:
    """The agent's logs come out, its directory becomes a link, and the logs are put back, as Harbor does."""
    sandbox = await make()
    await sandbox.exec(f"mkdir -p /logs/agent; echo '{FORGED}' > /logs/agent/reward.json")
    await sandbox.download_dir("/logs/agent", tmp_path / "agent")
    assert (tmp_path / "agent" / "reward.json").exists()
    await sandbox.exec(f"rm -rf /logs/agent; ln -s {link} /logs/agent")
    await _attempted(sandbox.upload_dir(tmp_path / "agent", "/logs/agent"))
    await _attempted(sandbox.upload_file(tmp_path / "agent" / "reward.json", "/logs/agent/reward.json"))
    assert await _graded(sandbox, tmp_path) == {"reward.txt": "0"}


async def test_logs_go_back_to_where_they_were(make: Make, tmp_path: Path) -> None:
    """The harmless twin: nobody swaps anything."""
    sandbox = await make()
    await sandbox.exec("mkdir -p /logs/agent/deep; echo text > /logs/agent/deep/log; ln -s deep/log /logs/agent/link")
    await sandbox.download_dir("/logs/agent", tmp_path / "agent")
    (tmp_path / "agent" / "more").write_text("of Harbor")
    await sandbox.upload_dir(tmp_path / "agent", "/logs/agent")
    assert (await sandbox.exec("cat /logs/agent/deep/log /logs/agent/link /logs/agent/more")).stdout == (
        "text\ntext\nof Harbor"
    )
    assert await _graded(sandbox, tmp_path, "echo 1 > /logs/verifier/reward.txt") == {"reward.txt": "1"}


async def test_directory_that_is_swapped_all_the_time(make: Make, tmp_path: Path) -> None:
    sandbox = await make()
    await sandbox.exec(SWAPPER)
    agent = tmp_path / "agent"
    agent.mkdir()
    (agent / "reward.json").write_text(FORGED)
    for _ in range(30):
        await _attempted(sandbox.upload_dir(agent, "/logs/agent"))
        await _attempted(sandbox.upload_file(agent / "reward.json", "/logs/agent/reward.json"))
        await _attempted(sandbox.download_dir("/logs/agent", tmp_path / "copy"))
    assert await _graded(sandbox, tmp_path) == {"reward.txt": "0"}


async def test_whole_trial_beside_a_swapper(workplace: Workplace) -> None:
    outcome = await workplace.run(workplace.task(SWAPPER, ZERO))
    assert (outcome.reward, outcome.error) == (0, "")


PLANTED = {
    "fifo": "mkfifo /logs/verifier/reward.txt /logs/verifier/reward.json",
    "hard_link": f"cd /logs/verifier; echo '{FORGED}' > one; ln one reward.json",
    "directory": "mkdir -p /logs/verifier/reward.json/x",
    "link_to_itself": "ln -s reward.json /logs/verifier/reward.json",
    "unreadable_name": "touch \"/logs/verifier/$(printf 'reward\\377.json')\"",
    "deep": "cd /logs/verifier; for i in $(seq 400); do mkdir d; cd d; done",
}


@pytest.mark.parametrize("plant", PLANTED.values(), ids=PLANTED.keys())
async def test_what_lies_there_beforehand_does_not_count(make: Make, tmp_path: Path, plant: str) -> None:
    sandbox = await make()
    assert (await sandbox.exec(f"mkdir -p /logs/verifier; {plant}")).return_code == 0
    assert await _graded(sandbox, tmp_path) == {"reward.txt": "0"}


VERIFIERS = {
    "fifo": "mkfifo /logs/verifier/reward.txt",
    "link_to_the_agents": "ln -s /app/reward /logs/verifier/reward.txt",
    "link_to_a_process": "ln -s /proc/1/environ /logs/verifier/reward.txt",
    "directory": "mkdir /logs/verifier/reward.txt",
}


@pytest.mark.parametrize("test", VERIFIERS.values(), ids=VERIFIERS.keys())
async def test_reward_that_is_no_file_is_none(make: Make, tmp_path: Path, test: str) -> None:
    sandbox = await make()
    await sandbox.exec("echo 1 > /app/reward")
    assert await _graded(sandbox, tmp_path, test) == {}


async def test_next_step_begins_without_the_last_ones_reward(make: Make, tmp_path: Path) -> None:
    """Neither its file nor a process that its verifier left brings it back."""
    sandbox = await make()
    lasting = (
        "echo 1 > /logs/verifier/reward.txt; nohup setsid bash -c 'while sleep 0.02; do"
        " [ -e /logs/verifier/reward.txt ] || echo 1 > /logs/verifier/reward.txt; done' > /dev/null 2>&1 &"
    )
    assert await _graded(sandbox, tmp_path, lasting) == {"reward.txt": "1"}
    await sandbox.empty_dirs(["/logs/verifier"])
    await sandbox.empty_dirs(["/tests"], chmod=False)
    assert (await sandbox.exec("ls -A /tests")).stdout == ""
    assert await _graded(sandbox, tmp_path / "again", "sleep 0.2") == {}


UPLOADS = {
    "file": "/logs/verifier/reward.json",
    "upwards": "/logs/agent/../verifier/reward.json",
    "doubled": "//logs//verifier/./reward.json",
    "relative": "../logs/verifier/reward.json",
}


@pytest.mark.parametrize("target", UPLOADS.values(), ids=UPLOADS.keys())
async def test_artifact_is_no_reward(make: Make, tmp_path: Path, target: str) -> None:
    """A verifier in a sandbox of its own gets the agent's artifacts before it runs."""
    sandbox = await make()
    tree = tmp_path / "tree"
    (tree / "verifier").mkdir(parents=True)
    (tree / "verifier" / "reward.json").write_text(FORGED)
    await sandbox.upload_file(tree / "verifier" / "reward.json", target)
    await sandbox.upload_dir(tree / "verifier", target.removesuffix("/reward.json"))
    await sandbox.upload_dir(tree, "/logs")
    assert (await sandbox.exec("ls -A /logs/verifier")).stdout == ""


async def test_artifact_arrives_elsewhere(make: Make, tmp_path: Path) -> None:
    sandbox = await make()
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "reward.json").write_text(FORGED)
    await sandbox.upload_dir(tmp_path / "tree", "/logs/artifacts")
    await sandbox.upload_file(tmp_path / "tree" / "reward.json", "/logs/verifier.json")
    assert (await sandbox.exec("cat /logs/artifacts/reward.json /logs/verifier.json")).stdout == FORGED * 2


async def test_download_does_not_follow_a_link_of_the_last_one(make: Make) -> None:
    """A tree may bring links that stay in it; nothing is written through them afterwards."""
    sandbox = await make()
    trial = sandbox.trial_paths.trial_dir
    await sandbox.exec("mkdir -p /out/real; ln -s real /out/way; echo x > /x")
    await sandbox.download_dir("/out", trial / "artifacts")
    assert (trial / "artifacts" / "way").is_symlink()
    for a_try in (
        sandbox.download_dir("/out", trial / "artifacts" / "way"),
        sandbox.download_file("/x", trial / "artifacts" / "way" / "x"),
    ):
        with pytest.raises(OSError, match="symbolic links"):
            await a_try
    assert list((trial / "artifacts" / "real").iterdir()) == []
    await asyncio.gather(sandbox.download_file("/x", trial / "artifacts" / "real" / "x"))
    assert (trial / "artifacts" / "real" / "x").read_text() == "x\n"
