"""An agent that ends its own processes has failed, and is graded: it is no fault of the sandbox, and no second try."""

from __future__ import annotations

import pytest

from seatrial.adapters.runner_harbor.outcome import result_of
from seatrial.domain.trial import Mark, Outcome
from seatrial.sandboxes.own_processes import OwnProcessesKilled, TerminalWatch
from tests.trials import Workplace
from tests.workplace_fixture import Make

GRADED = "test -f /app/done && echo 0.5 > /logs/verifier/reward.txt"
WAYS = {
    "everything": "kill -9 -1",
    "everything, from behind": 'setsid sh -c "sleep 0.1; kill -9 -1" & sleep 2',
    "everything, again and again": 'setsid sh -c "while kill -9 -1; do :; done" & kill -9 -1',
    "the first process": "for s in KILL TERM INT HUP QUIT USR1 STOP SEGV; do kill -$s 1; done; true",
    "each by its number": 'for p in /proc/[0-9]*; do kill -9 "${p#/proc/}"; done',
    "as an ordinary user": "su agent -c 'kill -9 -1'; true",
    "restart": "perl -e 'syscall(169, 0xfee1dead, 672274793, 0x1234567, 0)'; true",
}


@pytest.mark.parametrize("way", WAYS)
async def test_attempt_is_graded(workplace: Workplace, way: str) -> None:
    outcome = await workplace.run(workplace.task(f"touch /app/done\n{WAYS[way]}", GRADED, agent_timeout=20))
    result = result_of(outcome.result, outcome.directory)
    assert result.outcome is Outcome.FAILED and result.rewards == {"reward": 0.5}, result.message
    assert result.cause is None


async def test_stopped_processes_are_a_timeout(workplace: Workplace) -> None:
    outcome = await workplace.run(
        workplace.task("touch /app/done; kill -STOP -1; kill -STOP $$", GRADED, agent_timeout=15)
    )
    result = result_of(outcome.result, outcome.directory)
    assert result.outcome is Outcome.FAILED and Mark.AGENT_TIMEOUT in result.marks


async def test_work_that_ends_well_has_no_mark(workplace: Workplace) -> None:
    task = workplace.task("touch /app/done; sleep 60 & kill -9 $!; true", GRADED)
    result = result_of((outcome := await workplace.run(task)).result, outcome.directory)
    assert result.rewards == {"reward": 0.5} and result.marks == ()


async def test_what_the_agent_ended_stays_ended_and_is_said(make: Make) -> None:
    sandbox = await make()
    try:
        await sandbox.exec("kill -9 -1")
        await sandbox.exec("echo again")
    except OwnProcessesKilled as ended:
        assert "run is over" in str(ended)
    assert await sandbox.is_dir("/app")


async def test_terminal_that_the_agent_ended(make: Make) -> None:
    sandbox = await make()
    await sandbox.exec("tmux -V")
    assert (await sandbox.exec("tmux new-session -d -s main bash")).return_code == 0
    assert (await sandbox.exec("tmux send-keys -t main 'touch /app/typed' Enter")).return_code == 0
    with pytest.raises(OwnProcessesKilled):
        await sandbox.exec("tmux kill-server")
        await sandbox.exec("tmux send-keys -t main 'echo x' Enter")


def test_terminal_that_never_began_is_no_doing_of_the_agent() -> None:
    watch = TerminalWatch()
    watch.judge("tmux new-session -d -s main", 1, "open terminal failed")
    watch.judge("tmux send-keys -t main x", 1, "no server running on /tmp/tmux-0/default")
    watch.judge("tmux new-session -d -s main", 0, "")
    watch.judge("tmux send-keys -t main x", 1, "unknown key")
    with pytest.raises(OwnProcessesKilled):
        watch.judge("tmux send-keys -t main x", 1, "no server running on /tmp/tmux-0/default")
