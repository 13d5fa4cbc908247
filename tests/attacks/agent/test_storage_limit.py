"""An agent that wants more disk than it is allowed, by every way that a count of its files would miss."""

from __future__ import annotations

from pathlib import Path

import pytest

from seatrial.sandboxes.oci.environment import OciEnvironment
from seatrial.sandboxes.sandbox import Sandbox
from tests.trials import Workplace
from tests.workplace_fixture import Make

pytestmark = pytest.mark.sandbox

LIMIT_MB = 64
WAYS = {
    "one file": "dd if=/dev/zero of=/big bs=1M count=300",
    "one call": "fallocate -l 300M /big",
    "many files": "for i in $(seq 300); do dd if=/dev/zero of=/big$i bs=1M count=1 || exit 1; done",
    "unlinked while open": "exec 9> /big; rm /big; dd if=/dev/zero bs=1M count=300 >&9",
    "unlinked and mapped": 'perl -e \'open F, "+>", "/big"; unlink "/big"; '
    'for (1..300) { syswrite(F, "x" x 1048576) or exit 1 }\'',
    "/etc/hosts": "dd if=/dev/zero of=/etc/hosts bs=1M count=300",
    "/etc/resolv.conf": "dd if=/dev/zero of=/etc/resolv.conf bs=1M count=300",
    "/logs": "dd if=/dev/zero of=/logs/agent/big bs=1M count=300",
    "/tests": "dd if=/dev/zero of=/tests/big bs=1M count=300",
    "a path that is longer than any call takes": 'perl -e \'my $n = "d" x 200; '
    'for (1..60) { mkdir $n; chdir $n } open F, ">", "big"; '
    'for (1..300) { syswrite(F, "x" x 1048576) or exit 1 }\'',
    "a hidden folder of root": "mkdir -m 700 /root/.x && dd if=/dev/zero of=/root/.x/big bs=1M count=300",
    "extended over a hole": "truncate -s 10G /big && dd if=/dev/zero of=/big bs=1M seek=5000 count=300 conv=notrunc",
}


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory, image_cache: Path) -> Workplace:
    return Workplace(tmp_path_factory.mktemp("storage"), image_cache)


@pytest.mark.parametrize("way", WAYS)
async def test_kernel_ends_what_goes_over_the_limit(make: Make, way: str) -> None:
    sandbox = await make(storage_mb=LIMIT_MB)
    taken = _taken(sandbox)
    result = await sandbox.exec(f"cd /app; {WAYS[way]} 2> /tmp/said; code=$?; cat /tmp/said >&2; exit $code")
    assert result.return_code != 0, result
    assert _taken(sandbox) - taken < (LIMIT_MB + 16) << 20
    assert (
        await sandbox.exec("rm -rf /big* /app/d* /tests/* /logs/agent/* /root/.x; echo usable")
    ).stdout == "usable\n"
    assert "storage: image, a file system of its own that ends at the limit" in sandbox.facts.protections


async def test_files_without_content_are_limited_too(make: Make) -> None:
    sandbox = await make(storage_mb=LIMIT_MB)
    script = 'mkdir /many; cd /many; perl -e \'for (1..80000) { open(F, ">", $_) or die "$_: $!\\n" }\''
    result = await sandbox.exec(script)
    assert result.return_code != 0 and "No space left" in (result.stderr or "")
    await sandbox.exec("true")
    assert (await sandbox.exec("rm -rf /many && touch /fine && echo usable")).stdout == "usable\n"


@pytest.mark.parametrize(
    "use",
    [
        "dd if=/dev/zero of=/fine bs=1M count=50",
        "for i in $(seq 8); do dd if=/dev/zero of=/again bs=1M count=40 && rm /again || exit 1; done",
        "truncate -s 20G /sparse",
        "mkdir /many && cd /many && seq 20000 | xargs touch",
        "ln /etc/hostname /second && ln /etc/hostname /third",
    ],
    ids=["within", "again and again", "sparse", "many files", "links"],
)
async def test_what_is_within_the_limit_is_let_be(make: Make, use: str) -> None:
    sandbox = await make(storage_mb=LIMIT_MB)
    result = await sandbox.exec(use)
    assert result.return_code == 0, result
    assert "storage_exceeded_mb" not in sandbox.facts.limits


async def test_full_disk_is_graded_and_said(workplace: Workplace) -> None:
    """The agent fills its disk, leaves something that goes on filling, and still the verifier can write."""
    fill = "(while true; do dd if=/dev/zero of=/big$RANDOM bs=1M; sleep 0.01; done) > /dev/null 2>&1 & "
    fill += "while dd if=/dev/zero of=/fill bs=1M oflag=append conv=notrunc; do :; done; true"
    task = workplace.task(fill, "dd if=/dev/zero of=/tmp/x bs=1M count=20 && echo 0 > /logs/verifier/reward.txt")
    config = task / "task.toml"
    config.write_text(config.read_text() + f"storage_mb = {LIMIT_MB}\n")
    outcome = await workplace.run(task)
    assert outcome.error == "" and outcome.reward == 0
    assert outcome.facts.limits["storage_exceeded_mb"] >= LIMIT_MB - 2


async def test_verifier_is_limited_too(make: Make, tmp_path: Path) -> None:
    sandbox = await make(storage_mb=LIMIT_MB)
    taken = _taken(sandbox)
    await sandbox.upload_dir(tmp_path, "/tests")
    for place in ("/tests", "/logs/verifier", "/tmp"):
        result = await sandbox.exec(
            f"dd if=/dev/zero of={place}/big bs=1M count=600; code=$?; rm {place}/big; exit $code"
        )
        assert result.return_code != 0
    assert _taken(sandbox) - taken < (LIMIT_MB + 320) << 20
    assert (await sandbox.exec("echo 1 > /logs/verifier/reward.txt && echo written")).stdout == "written\n"


async def test_memory_directories_count_as_memory(make: Make) -> None:
    sandbox = await make(storage_mb=LIMIT_MB)
    result = await sandbox.exec("dd if=/dev/zero of=/dev/shm/big bs=1M count=300")
    assert result.return_code != 0
    assert (await sandbox.exec("dd if=/dev/zero of=/dev/shm/big bs=1M count=8")).return_code == 0


def _taken(sandbox: Sandbox) -> int:
    assert isinstance(sandbox, OciEnvironment) and sandbox._pod is not None and sandbox._pod.root.disk is not None
    return sandbox._pod.root.disk.taken
