"""Grading: the tests and the reward belong to the verifier alone, and everything else is as the agent left it.

Harbor's calls in Harbor's order: the agent's commands, ``upload_dir`` to ``/tests``, the tests by ``exec``, and
``download_dir`` of ``/logs/verifier``. The daemons are what a cheating agent leaves running, as root.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from harbor.environments.base import BaseEnvironment

from tests.contracts.sandbox.conftest import MakeSandbox
from tests.contracts.sandbox.test_isolation import DOCKER_DEFAULT, NO_NEW_PRIVILEGES
from tests.waiting import LIMIT_SEC, eventually

PREPARE = "mkdir -p /logs/agent /logs/verifier /logs/artifacts && chmod 777 /logs/agent /logs/verifier /logs/artifacts"
# Half a second of work before the verdict, so that a daemon has all the time it wants.
HONEST_FAILURE = "#!/bin/bash\necho judging\nsleep 0.7\necho 0 > /logs/verifier/reward.txt\nsleep 0.3\n"


@pytest.fixture
def tests_dir(tmp_path: Path) -> Path:
    directory = tmp_path / "tests"
    directory.mkdir()
    (directory / "test.sh").write_text(HONEST_FAILURE)
    (directory / "expected.txt").write_text("the-answer-is-42")
    return directory


async def _grade(sandbox: BaseEnvironment, tests: Path, user: str | None = None) -> Path:
    """What Harbor's verifier does; gives the directory that it would read the reward from."""
    target = tests.parent / "verifier"
    await sandbox.upload_dir(source_dir=tests, target_dir="/tests")
    await sandbox.exec("chmod +x /tests/test.sh", user="root")
    with sandbox.with_default_user(user):
        await sandbox.exec("/tests/test.sh > /logs/verifier/test-stdout.txt 2>&1", timeout_sec=round(LIMIT_SEC))
    await sandbox.download_dir(source_dir="/logs/verifier", target_dir=target)
    return target


async def _daemon(sandbox: BaseEnvironment, loop: str) -> None:
    """Leaves a loop running that writes down what it finds, and waits until it runs."""
    await sandbox.exec(
        f"nohup setsid bash -c 'touch /tmp/daemon-runs; while true; do {loop}; sleep 0.01; done' >/dev/null 2>&1 &"
    )

    async def runs() -> bool:
        return (await sandbox.exec("test -e /tmp/daemon-runs")).return_code == 0

    await eventually(runs, "the daemon runs")


async def test_honest_grading(make_sandbox: MakeSandbox, tests_dir: Path) -> None:
    """The verifier sees what the agent left, in the directory, with the environment and as the user it should."""
    sandbox = await make_sandbox()
    await sandbox.exec(f"{PREPARE}; echo 42 > answer; echo mine > /logs/agent/log; echo art > /logs/artifacts/a")
    (tests_dir / "test.sh").write_text(
        "#!/bin/bash\npwd; id -un; echo $FROM_IMAGE; cat /logs/agent/log /logs/artifacts/a; ls /tests\n"
        "[ $(cat answer) = 42 ] && echo 1 > /logs/verifier/reward.txt\n"
    )
    found = await _grade(sandbox, tests_dir)
    assert (found / "reward.txt").read_text() == "1\n"
    output = (found / "test-stdout.txt").read_text()
    assert output == "/app\nroot\nof the image\nmine\nart\nexpected.txt\ntest.sh\n"


async def test_grading_as_another_user(make_sandbox: MakeSandbox, tests_dir: Path) -> None:
    sandbox = await make_sandbox()
    await sandbox.exec(PREPARE)
    (tests_dir / "test.sh").write_text("#!/bin/bash\nid -un; echo $HOME; echo 1 > /logs/verifier/reward.txt\n")
    found = await _grade(sandbox, tests_dir, user="agent")
    assert (found / "reward.txt").read_text() == "1\n"
    assert (found / "test-stdout.txt").read_text() == "agent\n/home/agent\n"


async def test_service_of_the_agent_is_reachable(make_sandbox: MakeSandbox, tests_dir: Path) -> None:
    """On the network, by its process, by shared memory and by a socket in the file system."""
    sandbox = await make_sandbox()
    serve = (
        "use IO::Socket; my $s = IO::Socket::INET->new(LocalAddr => q(127.0.0.1), LocalPort => 8123, Listen => 5,"
        " ReuseAddr => 1) or die; while (my $c = $s->accept) { print $c qq(served\\n); close $c }"
    )
    await sandbox.exec(
        f"{PREPARE}; echo shared > /dev/shm/note; (exec -a my-service perl -e '{serve}') >/dev/null 2>&1 &"
    )
    (tests_dir / "test.sh").write_text(
        "#!/bin/bash\nexec 3<>/dev/tcp/127.0.0.1/8123; cat <&3\ncat /dev/shm/note\n"
        "grep -al my-service /proc/[0-9]*/cmdline | grep -v self | grep -q . && echo process\n"
        "echo 1 > /logs/verifier/reward.txt\n"
    )

    async def is_served() -> bool:
        return (await sandbox.exec("exec 3<>/dev/tcp/127.0.0.1/8123; cat <&3")).stdout == "served\n"

    await eventually(is_served, "the service answers")
    found = await _grade(sandbox, tests_dir)
    assert (found / "test-stdout.txt").read_text() == "served\nshared\nprocess\n"


async def test_tests_are_absent_for_the_agent(make_sandbox: MakeSandbox, tests_dir: Path) -> None:
    """Before and while grading, for a daemon that looks all the time."""
    sandbox = await make_sandbox()
    await sandbox.exec(PREPARE)
    assert not ((await sandbox.exec("ls -A /tests 2>/dev/null")).stdout or "").strip()
    await _daemon(sandbox, "ls -A /tests >> /tmp/seen 2>/dev/null; cat /tests/* >> /tmp/seen 2>/dev/null")
    found = await _grade(sandbox, tests_dir)
    assert (found / "reward.txt").read_text() == "0\n"
    assert not (await sandbox.exec("cat /tmp/seen")).stdout


async def test_reward_written_beforehand_is_gone(make_sandbox: MakeSandbox, tests_dir: Path) -> None:
    sandbox = await make_sandbox()
    await sandbox.exec(
        f"{PREPARE}; echo 1 > /logs/verifier/reward.txt; echo '{{\"reward\": 1}}' > /logs/verifier/reward.json"
    )
    (tests_dir / "test.sh").write_text("#!/bin/bash\nexit 1\n")
    found = await _grade(sandbox, tests_dir)
    assert sorted(path.name for path in found.iterdir()) == ["test-stdout.txt"]


async def test_reward_link_planted_beforehand_is_gone(make_sandbox: MakeSandbox, tests_dir: Path) -> None:
    """The file, the directory and its parent as links to where the agent can write."""
    sandbox = await make_sandbox()
    await sandbox.exec(
        f"{PREPARE}; mkdir /fake; echo 1 > /fake/reward.txt; ln -s /fake/reward.txt /logs/verifier/reward.txt"
    )
    assert ((await _grade(sandbox, tests_dir)) / "reward.txt").read_text() == "0\n"
    other = await make_sandbox()
    await other.exec(
        f"{PREPARE}; mkdir -p /fake/verifier; echo 1 > /fake/verifier/reward.txt;"
        "rm -rf /logs/verifier /tests; ln -s /fake/verifier /logs/verifier; ln -s /fake /tests"
    )
    assert ((await _grade(other, tests_dir)) / "reward.txt").read_text() == "0\n"


async def test_daemon_cannot_rewrite_the_reward(make_sandbox: MakeSandbox, tests_dir: Path) -> None:
    sandbox = await make_sandbox()
    await sandbox.exec(PREPARE)
    await _daemon(
        sandbox,
        "mkdir -p /logs/verifier; echo 1 > /logs/verifier/reward.txt; echo 1 > /logs/verifier/reward.json;"
        "echo echo 1 > /tests/test.sh",
    )
    found = await _grade(sandbox, tests_dir)
    assert (found / "reward.txt").read_text() == "0\n"
    assert not (found / "reward.json").exists()


async def test_daemon_cannot_take_the_directories_away(make_sandbox: MakeSandbox, tests_dir: Path) -> None:
    """A directory that is removed or renamed outside takes what was mounted on it along, unless that is prevented."""
    sandbox = await make_sandbox()
    await sandbox.exec(f"{PREPARE}; mkdir -p /fake/verifier; echo 1 > /fake/verifier/reward.txt")
    await sandbox.exec(
        "printf '#!/bin/bash\\necho 1 > /logs/verifier/reward.txt\\n' > /fake/test.sh; chmod +x /fake/test.sh"
    )
    await _daemon(
        sandbox,
        "for d in /tests /logs /logs/verifier; do"
        " rmdir $d; mv $d $d.gone; rm -rf $d; ln -s /fake $d; cp -r /fake $d; done;"
        "mkdir -p /logs /tests; cp -r /fake/verifier /logs/; cp /fake/test.sh /tests/",
    )
    found = await _grade(sandbox, tests_dir)
    assert (found / "reward.txt").read_text() == "0\n"


async def test_daemon_cannot_enter_through_proc(make_sandbox: MakeSandbox, tests_dir: Path) -> None:
    """Root outside may look into ``/proc/<pid>/root`` of its equals: the verifier must not be one."""
    sandbox = await make_sandbox()
    await sandbox.exec(PREPARE)
    await _daemon(
        sandbox,
        "for p in /proc/[0-9]*; do for w in root cwd; do cat $p/$w/tests/expected.txt $p/$w/expected.txt;"
        "echo 1 > $p/$w/logs/verifier/reward.txt; cp $p/$w/tests/test.sh /tmp/stolen; done; cat $p/fd/*; done"
        " 2>/dev/null | grep -a the-answer >> /tmp/seen",
    )
    (tests_dir / "test.sh").write_text(HONEST_FAILURE + "exec 5</tests/expected.txt; sleep 0.5\n")
    found = await _grade(sandbox, tests_dir)
    assert (found / "reward.txt").read_text() == "0\n"
    assert not (await sandbox.exec("cat /tmp/seen /tmp/stolen 2>/dev/null")).stdout


async def test_root_enters_its_equals_through_proc(sandbox: BaseEnvironment) -> None:
    """The control of the test above: the daemon's way works between its equals."""
    look = "cat /proc/$!/root/etc/debian_version; s=$?; kill $!; exit $s"
    equal = await sandbox.exec(f"sleep 600 >/dev/null 2>&1 & {look}")
    assert equal.return_code == 0


async def test_daemon_cannot_touch_grading_as_another_user(make_sandbox: MakeSandbox, tests_dir: Path) -> None:
    """The same for a verifier that is not root, which root outside could become."""
    sandbox = await make_sandbox()
    await sandbox.exec(PREPARE)
    await _daemon(
        sandbox,
        'su agent -c "for p in /proc/[0-9]*; do cat \\$p/root/tests/expected.txt;'
        " echo 1 > \\$p/root/logs/verifier/reward.txt;"
        ' done" 2>/dev/null | grep -a the-answer >> /tmp/seen',
    )
    found = await _grade(sandbox, tests_dir, user="agent")
    assert (found / "reward.txt").read_text() == "0\n"
    assert not (await sandbox.exec("cat /tmp/seen 2>/dev/null")).stdout


async def test_verifier_is_as_confined_as_the_agent(make_sandbox: MakeSandbox, tests_dir: Path) -> None:
    """It runs programs that the agent left, so it must not have what the agent has not."""
    sandbox = await make_sandbox()
    await sandbox.exec(PREPARE)
    (tests_dir / "test.sh").write_text(
        "#!/bin/bash\ngrep -E '^(CapBnd|CapEff|Seccomp):' /proc/self/status\n"
        f"{NO_NEW_PRIVILEGES}; echo ' no_new_privs'\n"
        "mount -t tmpfs none /mnt && echo mounted\numount /tests && echo unmounted\n"
        "unshare --user true && echo unshared\n"
        "ls /dev/vd* /dev/sd* && echo disks\n"
    )
    found = await _grade(sandbox, tests_dir)
    lines = (found / "test-stdout.txt").read_text().splitlines()
    values = dict(line.split(":\t") for line in lines if ":\t" in line)
    assert int(values["CapBnd"], 16) & ~DOCKER_DEFAULT == 0 and int(values["CapEff"], 16) & ~DOCKER_DEFAULT == 0
    assert values["Seccomp"] == "2" and "1 no_new_privs" in lines
    assert not {"mounted", "unmounted", "unshared", "disks"} & set(lines)


async def test_timeout_kills_while_grading(make_sandbox: MakeSandbox, tests_dir: Path) -> None:
    sandbox = await make_sandbox()
    await sandbox.exec(PREPARE)
    await sandbox.upload_dir(source_dir=tests_dir, target_dir="/tests")
    slow = "setsid bash -c 'sleep 600; echo 1 > /logs/verifier/reward.txt' >/dev/null 2>&1 & sleep 600"
    with pytest.raises(RuntimeError, match="timed out"):
        await sandbox.exec(slow, timeout_sec=1)

    async def is_gone() -> bool:
        search = "grep -al 'echo 1 > /logs/verifier/reward.tx[t]' /proc/[0-9]*/cmdline 2>/dev/null"
        return not ((await sandbox.exec(search)).stdout or "").strip()

    await eventually(is_gone, "no process of the grading")
    assert (await sandbox.exec("test -e /logs/verifier/reward.txt")).return_code == 1
    assert (await sandbox.exec("test -e /tests/expected.txt")).return_code == 0


async def test_steps_grade_one_after_another(make_sandbox: MakeSandbox, tests_dir: Path) -> None:
    """A multi-step task: Harbor empties both directories, and the next step's agent sees nothing of them."""
    sandbox = await make_sandbox()
    await sandbox.exec(PREPARE)
    (tests_dir / "test.sh").write_text("#!/bin/bash\nls /logs/verifier\necho 1 > /logs/verifier/reward.txt\n")
    first = await _grade(sandbox, tests_dir)
    assert (first / "reward.txt").read_text() == "1\n"
    await sandbox.empty_dirs(["/logs/verifier"], chmod=True)
    await sandbox.empty_dirs(["/tests"], chmod=False)
    assert not ((await sandbox.exec("ls -A /tests /logs/verifier | grep -v :")).stdout or "").strip()
    assert (await sandbox.exec("echo step two > /app/two; test -w /logs/verifier", user="agent")).return_code in (0, 1)
    (tests_dir / "test.sh").write_text("#!/bin/bash\nls /logs/verifier\necho 0 > /logs/verifier/reward.txt\n")
    second = await _grade(sandbox, tests_dir)
    assert (second / "reward.txt").read_text() == "0\n"
    assert (second / "test-stdout.txt").read_text() == "test-stdout.txt\n"
