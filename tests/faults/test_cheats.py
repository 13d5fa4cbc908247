"""Faults 23 to 25 on each sandbox of ours, as whole trials: what a solution writes never decides its own reward."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.trials import Outcome, Workplace

JUDGE = (
    'sleep 0.3; [ "$(cat /app/answer 2>/dev/null)" = 42 ] && reward=1;'
    " echo ${reward:-0} > /logs/verifier/reward.txt; sleep 0.2"
)
DAEMON = "nohup setsid bash -c 'while true; do {loop}; sleep 0.01; done' >/dev/null 2>&1 &"


async def _graded(workplace: Workplace, solve: str, test: str = JUDGE, agent_timeout: float = 120.0) -> Outcome:
    return await workplace.run(workplace.task(solve, test, agent_timeout=agent_timeout))


async def test_oracle_passes(workplace: Workplace) -> None:
    """The control of everything below."""
    outcome = await _graded(workplace, "echo 42 > /app/answer")
    assert (outcome.reward, outcome.error) == (1, "")
    assert not outcome.facts.suspicions and not outcome.facts.memory_killed


@pytest.mark.parametrize(
    "cheat",
    [
        pytest.param(
            "echo 1 > /logs/verifier/reward.txt; echo '{\"reward\": 1}' > /logs/verifier/reward.json", id="beforehand"
        ),
        pytest.param(
            "echo 1 > /one; ln -sf /one /logs/verifier/reward.txt; ln -sf /one /logs/verifier/reward.json", id="link"
        ),
        pytest.param(
            DAEMON.format(
                loop="echo 1 > /logs/verifier/reward.txt; echo 1 > /logs/verifier/reward.json;"
                " for p in /proc/[0-9]*/root/logs/verifier; do echo 1 > $p/reward.json; echo 1 > $p/reward.txt; done;"
                " mv /logs /l2; mv /logs/verifier /logs/v2"
            ),
            id="daemon",
        ),
        pytest.param(
            "echo NaN > /logs/verifier/reward.txt; echo '{\"reward\": NaN}' > /logs/verifier/reward.json", id="nan"
        ),
    ],
)
async def test_cheats_do_not_pass(workplace: Workplace, cheat: str) -> None:
    outcome = await _graded(workplace, cheat)
    assert (outcome.reward, outcome.error) == (0, "")


async def test_reward_that_is_no_number_is_an_error(workplace: Workplace) -> None:
    outcome = await _graded(workplace, "true", "echo nan > /logs/verifier/reward.txt")
    assert outcome.reward is None and outcome.error == "VerifierOutputParseError"


async def test_reward_that_links_to_this_machine_is_not_followed(workplace: Workplace) -> None:
    (workplace.directory / "one").write_text("1")
    outcome = await _graded(workplace, "true", f"ln -s {workplace.directory}/one /logs/verifier/reward.txt")
    assert outcome.reward is None and outcome.error == "RewardFileNotFoundError"


@pytest.mark.parametrize(
    ("cheat", "mark"),
    [
        ("printf '#!/bin/sh\\nexit 0\\n' > /usr/local/bin/grep; chmod +x /usr/local/bin/grep", "suspect_path"),
        (
            "d=/usr/lib/python3/dist-packages; mkdir -p $d; echo 'import os' > $d/sitecustomize.py",
            "suspect_python",
        ),
        ("echo 'echo hello' >> /etc/bash.bashrc", "suspect_shell"),
        ("echo /tmp/evil.so > /etc/ld.so.preload", "suspect_shell"),
    ],
)
async def test_tampering_is_flagged(workplace: Workplace, cheat: str, mark: str) -> None:
    outcome = await _graded(workplace, f"echo 42 > /app/answer; {cheat}")
    assert outcome.facts.suspicions == (mark,)
    assert outcome.reward == 1  # a mark changes nothing


@pytest.mark.parametrize(
    "honest",
    [
        "printf '#!/bin/sh\\n' > /usr/local/bin/my-new-tool; chmod +x /usr/local/bin/my-new-tool",
        "d=/usr/local/lib/python3.11/dist-packages; mkdir -p $d; echo /src > $d/editable.pth",
        "touch /usr/bin/grep; chmod 755 /bin/bash",
    ],
)
async def test_honest_changes_are_not_flagged(workplace: Workplace, honest: str) -> None:
    assert (await _graded(workplace, f"echo 42 > /app/answer; {honest}")).facts.suspicions == ()


async def test_answer_after_the_timeout_does_not_count(workplace: Workplace) -> None:
    """The judge looks when the late answer would be there."""
    answers = "({late}; echo 42 > /app/answer) & {late}; echo 42 > /app/answer; sleep 60"
    late = "until [ -e /app/judging ]; do sleep 0.1; done"
    outcome = await _graded(
        workplace, answers.format(late=late), "touch /app/judging; sleep 2; " + JUDGE, agent_timeout=3.0
    )
    assert outcome.reward == 0
    in_time = await _graded(workplace, answers.format(late="sleep 0.2"), JUDGE, agent_timeout=30.0)
    assert in_time.reward == 1


async def test_service_is_there_and_tests_are_not(workplace: Workplace) -> None:
    """The service's process, port and the number in its pid file are what the agent knew; ``/tests`` it never saw."""
    serve = (
        "perl -MIO::Socket -e '$s=IO::Socket::INET->new(LocalPort=>8099,Listen=>5,ReuseAddr=>1)||die;"
        " while($c=$s->accept){print $c qq(served\\n);close $c}' > /dev/null 2>&1 &"
    )
    answers = "(exec 3<>/dev/tcp/127.0.0.1/8099 && cat <&3) > /dev/null 2>&1"
    solve = f"ls -A /tests > /app/seen 2>/dev/null; {serve} echo $! > /app/pid; until {answers}; do sleep 0.1; done"
    test = (
        'exec 3<>/dev/tcp/127.0.0.1/8099; said=$(cat <&3); tr "\\0" " " < /proc/$(cat /app/pid)/cmdline | grep -q 8099'
        ' && [ "$said" = served ] && [ ! -s /app/seen ] && kill $(cat /app/pid) && reward=1\n'
        "echo ${reward:-0} > /logs/verifier/reward.txt; ls /tests"
    )
    outcome = await _graded(workplace, solve, test)
    stdout = (outcome.directory / "verifier" / "test-stdout.txt").read_text()
    assert outcome.reward == 1, stdout
    assert "test.sh" in stdout


async def test_nothing_lives_after_the_trial(workplace: Workplace) -> None:
    marker = f"{workplace.install}-sleeper"
    outcome = await _graded(workplace, f"(exec -a {marker} setsid sleep 600) > /dev/null 2>&1 & echo 42 > /app/answer")
    assert outcome.reward == 1
    assert not [path for path in Path("/proc").glob("[0-9]*/cmdline") if marker.encode() in _read(path)]
    assert not [
        path for path in workplace.run_dir.iterdir() if workplace.install.encode() in _read(path / "sandbox.json")
    ]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
