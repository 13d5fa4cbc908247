"""On a busy machine the runtime may still be ending when grading begins. It is not one of the agent's processes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from seatrial.sandboxes.oci.environment import OciEnvironment
from tests.trials import Workplace

pytestmark = pytest.mark.sandbox


async def test_a_process_of_ours_in_the_sandboxs_cgroup_is_not_the_agents(tmp_path: Path, image_cache: Path) -> None:
    sandbox = Workplace(tmp_path, image_cache).sandbox()
    assert isinstance(sandbox, OciEnvironment)
    await sandbox.start(force_build=False)
    runtime = subprocess.Popen(["sleep", "600"])
    try:
        pod, _ = sandbox._running()
        for place in pod.cgroups.entry_files("agent"):
            Path(place).write_text(str(runtime.pid))
        assert runtime.pid in pod.cgroups.processes("agent")
        await sandbox.begin_grading()
        assert not pod.findings.left_running
        await sandbox.exec("cp /bin/true /usr/bin/sort")  # as tests do that install something
        await sandbox.look_again()
        assert sandbox.facts.suspicions == ()
    finally:
        runtime.kill()
        runtime.wait()
        await sandbox.stop(delete=True)
