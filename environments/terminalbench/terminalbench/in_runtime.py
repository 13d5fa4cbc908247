"""Tasks in a container runtime of verifiers: their settings, and grading in the agent's container.

Works as in Harbor: tests are copied in after the agent has ended, ``/tests/test.sh`` runs, ``reward.json`` wins over
``reward.txt``. Unlike in Seatrial's sandboxes, the agent's processes can see this.
"""

import io
import json
import math
import tarfile
import tempfile
from pathlib import Path

import verifiers.v1 as vf
from harbor.models.task.config import NetworkMode
from harbor.models.task.task import Task as HarborTask
from seatrial.adapters.runner_harbor.tests_found import tests_in
from seatrial.domain.result import grade
from seatrial.domain.trial import Outcome
from seatrial.errors import VerifierFault
from seatrial.rollouts.graded import Graded
from seatrial.rollouts.tasks import FoundTask
from seatrial.rollouts.transcript import tail
from seatrial.sandboxes.own_values import own_values

_LARGEST = 8 << 20
_LONGEST_OUTPUT = 20_000
_FOLDER = "/logs/verifier"
_STAGE = (
    f"rm -rf /tests {_FOLDER} && mkdir -p /tests {_FOLDER} /logs/agent && tar -xzf /tmp/seatrial-tests.tgz -C /tests"
    " && rm /tmp/seatrial-tests.tgz && chmod +x /tests/test.sh"
)
_RUN = f"/tests/test.sh > {_FOLDER}/test-stdout.txt 2>&1"
_READ = ("reward.json", "reward.txt", "ctrf.json", "test-stdout.txt")


def own_environment(task: FoundTask) -> dict[str, str]:
    """The task's variables, without this process's environment."""
    return own_values(HarborTask(task.directory).config.environment.env)


def allowed_network(task: FoundTask) -> list[str]:
    """What the agent may reach, in verifiers' format."""
    config = HarborTask(task.directory).config
    policy = config.agent.explicit_phase_policy() or config.environment.resolve_baseline()
    return ["*"] if policy.network_mode == NetworkMode.PUBLIC else list(policy.allowed_hosts)


async def grade_in_runtime(task: FoundTask, runtime: vf.Runtime) -> Graded:
    """The verdict of the task's tests. Raises ``VerifierFault`` if they give none."""
    await runtime.prepare_execution(None)  # the tests are trusted, and may use the network
    wanted = HarborTask(task.directory)
    await runtime.write("/tmp/seatrial-tests.tgz", _packed(wanted.paths.tests_dir))  # noqa: S108
    staged = await runtime.run(["sh", "-c", _STAGE], {})
    if staged.exit_code != 0:
        raise VerifierFault(f"The tests could not be copied in: {tail(staged.stderr or staged.stdout, 500)}")
    await runtime.run(["bash", "-c", _RUN], own_values(wanted.config.verifier.env))
    with tempfile.TemporaryDirectory(prefix="seatrial-verdict-") as folder:
        for name in _READ:
            await _fetch(runtime, name, Path(folder))
        return _verdict(Path(folder))


async def _fetch(runtime: vf.Runtime, name: str, folder: Path) -> None:
    there = await runtime.run(["sh", "-c", f"test -f {_FOLDER}/{name}"], {})
    if there.exit_code == 0:
        (folder / name).write_bytes(await runtime.read(f"{_FOLDER}/{name}", max_bytes=_LARGEST))


def _verdict(folder: Path) -> Graded:
    rewards = _rewards(folder)
    printed = folder / "test-stdout.txt"
    return Graded(
        passed=grade(rewards) is Outcome.PASSED,
        rewards=rewards,
        tests=tests_in(folder),
        verifier_output=tail(printed.read_text(errors="replace"), _LONGEST_OUTPUT) if printed.is_file() else "",
    )


def _rewards(folder: Path) -> dict[str, float]:
    try:
        if (folder / "reward.json").is_file():
            content = json.loads((folder / "reward.json").read_text())
            rewards = {str(name): float(value) for name, value in content.items()}
        else:
            rewards = {"reward": float((folder / "reward.txt").read_text())}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise VerifierFault(f"The tests gave no valid reward: {error}") from error
    if not rewards or not all(math.isfinite(value) for value in rewards.values()):
        raise VerifierFault("The tests gave no valid reward: it is empty or not finite.")
    return rewards


def _packed(folder: Path) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for path in sorted(folder.iterdir()):
            archive.add(path, arcname=path.name)
    return packed.getvalue()
