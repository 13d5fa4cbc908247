"""An agent's and a verifier's time limit covers their own time: what they wait for our threads is not theirs."""

from __future__ import annotations

import asyncio
import threading
import uuid
from pathlib import Path

import pytest
from harbor.models.trial.config import AgentConfig, TrialConfig
from harbor.models.trial.config import EnvironmentConfig as TrialEnvironment
from harbor.models.trial.config import TaskConfig as TrialTask
from harbor.trial.hooks import TrialEvent, TrialHookEvent

from seatrial.adapters.runner_harbor.library_trial import LibraryTrials
from seatrial.adapters.runner_harbor.outcome import result_of
from seatrial.domain.result import Result
from seatrial.domain.trial import Mark, Outcome
from seatrial.sandboxes.host.tools import HostTools
from tests.trials import IMPORT_PATH, Workplace

pytestmark = pytest.mark.sandbox

_LIMIT_SEC = 12.0
"""Longer than a busy machine may take for a command that does nothing."""
_BUSY_SEC = _LIMIT_SEC + 4
_SOON_SEC = 4.0
"""For who is late in any case."""
_LONG_SEC = 120.0
_GRADE = '[ -e /app/done ] && reward=1; echo "${reward:-0}" > /logs/verifier/reward.txt'


class Crowd:
    """Holds every thread for transfers for a while, from a phase of the trial on."""

    def __init__(self, cache: Path) -> None:
        self._mounts = HostTools.shared(cache).mounts
        self._over = threading.Event()
        self._holding: list[asyncio.Task[bool]] = []

    async def hold(self, event: TrialHookEvent) -> None:
        self._holding = [asyncio.create_task(self._mounts.carry(self._over.wait)) for _ in range(8)]
        asyncio.get_running_loop().call_later(_BUSY_SEC, self._over.set)
        await asyncio.sleep(0.1)

    async def leave(self) -> None:
        self._over.set()
        await asyncio.gather(*self._holding)


async def _run(workplace: Workplace, solve: str, test: str, busy: TrialEvent | None = None, **limits: float) -> Result:
    """``limits`` of the agent and of the verifier. Who is not tried has a long one."""
    task = workplace.task(solve, test, agent_timeout=limits.get("agent", _LONG_SEC))
    settings, verifier = task / "task.toml", limits.get("verifier", _LONG_SEC)
    settings.write_text(settings.read_text().replace("timeout_sec = 60.0", f"timeout_sec = {verifier}"))
    config = TrialConfig(
        task=TrialTask(path=task),
        trials_dir=workplace.directory / "trials",
        trial_name=f"trial-{uuid.uuid4().hex[:8]}",
        agent=AgentConfig(name="oracle"),
        environment=TrialEnvironment(
            import_path=IMPORT_PATH,
            kwargs={
                "options": workplace.options(),
                "owner": {"install": workplace.install, "trial": 7, "try_number": 1},
            },
        ),
    )
    trial = await LibraryTrials(workplace.directory).create(config)
    crowd = Crowd(workplace.cache)
    if busy is not None:
        trial.add_hook(busy, crowd.hold)
    await trial.run()
    await crowd.leave()
    return result_of(trial.result, trial.paths.trial_dir)


@pytest.fixture
def oci(tmp_path: Path, image_cache: Path) -> Workplace:
    return Workplace(tmp_path, image_cache)


@pytest.mark.parametrize("busy", [TrialEvent.AGENT_START, TrialEvent.VERIFICATION_START])
async def test_who_waits_for_our_threads_is_not_late(oci: Workplace, busy: TrialEvent) -> None:
    who = "agent" if busy is TrialEvent.AGENT_START else "verifier"
    result = await _run(oci, "touch /app/done", _GRADE, busy, **{who: _LIMIT_SEC})
    assert (result.outcome, result.marks, result.message) == (Outcome.PASSED, (), "")


async def test_who_takes_too_long_is_late(oci: Workplace) -> None:
    result = await _run(oci, "sleep 60; touch /app/done", _GRADE, agent=_SOON_SEC)
    assert result.outcome is Outcome.FAILED and Mark.AGENT_TIMEOUT in result.marks
    result = await _run(oci, "touch /app/done", f"sleep 60; {_GRADE}", verifier=_SOON_SEC)
    assert result.outcome is Outcome.ERROR and "VerifierTimeoutError" in result.message
