"""What an agent, or a program that it left for the verifier, asks of the kernel: sockets of any family, and old tricks.

All calls are made once in each view of one sandbox of each kind; the tests then read what the kernel said.
"""

from __future__ import annotations

import errno
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from seatrial.sandboxes.sandbox import Sandbox
from tests.engine_fixture import container_engine, image_cache, run_dir
from tests.trials import Workplace

__all__ = ["container_engine", "image_cache", "run_dir"]

pytestmark = pytest.mark.asyncio(loop_scope="module")

NO_FAMILY, NO_PROTOCOL = errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT
REFUSED, MISSING = errno.EPERM, errno.ENOSYS
NEW_NAMESPACES = {"user": 0x10000000, "mount": 0x20000, "network": 0x40000000, "pid": 0x20000000, "cgroup": 0x2000000}
FAMILIES = {"AF_VSOCK": 40, "AF_ALG": 38, "AF_XDP": 44, "AF_BLUETOOTH": 31, "AF_CAN": 29, "AF_TIPC": 30, "AF_RDS": 21}
FAMILIES |= {"AF_AX25": 3, "AF_X25": 9, "AF_KEY": 15, "AF_NFC": 39, "AF_KCM": 41, "AF_QIPCRTR": 42, "AF_SMC": 43}

ATTACKS: dict[str, set[int]] = {
    **{f"socket={number}": {NO_FAMILY} for number in FAMILIES.values()},
    # The kernel reads 32 bits of the family; a filter that compares 64 takes this for another one.
    "socket-high-bits=40": {NO_FAMILY},
    "socketpair=30": {NO_FAMILY},
    # The same through the older ways into the same kernel.
    "x32-socket=40": {NO_FAMILY},
    "compat-socket=40": {NO_FAMILY},
    "compat-socketcall=40": {NO_FAMILY},
    "compat-socketcall=2": {NO_FAMILY},
    **{f"netlink={number}": {NO_PROTOCOL} for number in (6, 11, 12, 21)},
    "netlink-high-bits=12": {NO_PROTOCOL},
    # A ring makes sockets and opens files past the filter.
    "io_uring_setup": {REFUSED, MISSING},
    "io_uring_enter": {REFUSED, MISSING},
    "io_uring_register": {REFUSED, MISSING},
    **{f"unshare={flag:#x}": {REFUSED, MISSING} for flag in NEW_NAMESPACES.values()},
    **{f"clone={flag:#x}": {REFUSED, MISSING} for flag in NEW_NAMESPACES.values()},
    "clone3": {MISSING},
    "personality=0x40000": {REFUSED, MISSING},
    **{
        call: {REFUSED}
        for call in [
            *["name_to_handle_at", "open_by_handle_at", "pidfd_getfd", "kcmp", "userfaultfd", "keyctl", "add_key"],
            *["request_key", "bpf", "perf_event_open", "setns", "mount", "fsopen", "open_tree", "move_mount"],
            *["mount_setattr", "syslog", "quotactl", "init_module", "kexec_load"],
        ]
    },
}
HONEST = [
    *(f"open-socket={family}" for family in (1, 2, 10)),
    *(f"open-datagrams={family}" for family in (1, 2, 10)),
    *(f"open-netlink={protocol}" for protocol in (0, 4, 15, 16)),
    "open-pair",
    "fork",
    "personality=0",
    "personality=0xffffffff",
]
SIDECARS_OWN = ("mount", "setns", "unshare", "clone=")
"""Calls that the docker sandbox's filter leaves to the verifier, who lacks the capability for each."""

Said = dict[str, dict[str, str]]


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("calls") / "calls"
    source = Path(__file__).with_name("system_calls.c")
    subprocess.run(["gcc", "-static", "-O1", "-o", program, source], check=True)
    return program


@pytest_asyncio.fixture(
    scope="module",
    loop_scope="module",
    params=[pytest.param("oci", marks=pytest.mark.sandbox), pytest.param("docker", marks=pytest.mark.engine)],
)
async def sandbox(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, image_cache: Path
) -> AsyncIterator[Sandbox]:
    engine = request.getfixturevalue("container_engine") if request.param == "docker" else None
    made = Workplace(tmp_path_factory.mktemp("seccomp"), image_cache, engine).sandbox()
    await made.start(force_build=False)
    yield made
    await made.stop(delete=True)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def said(sandbox: Sandbox, calls: Path, tmp_path_factory: pytest.TempPathFactory) -> Said:
    """What the kernel said to each call, to the agent and to the verifier."""
    await sandbox.upload_file(calls, "/calls")
    command = " ".join(["chmod +x /calls; /calls", *ATTACKS, *HONEST])
    agent = await sandbox.exec(command)
    await sandbox.begin_grading()
    tests = tmp_path_factory.mktemp("tests")
    (tests / "test.sh").write_text("")
    await sandbox.upload_dir(tests, "/tests")
    verifier = await sandbox.exec(command)
    await sandbox.end_grading()
    return {"agent": _read(agent.stdout), "verifier": _read(verifier.stdout)}


def _read(output: str | None) -> dict[str, str]:
    return dict(line.rsplit(" ", 1) for line in (output or "").splitlines())


@pytest.mark.parametrize("call", ATTACKS)
async def test_the_filter_refuses(said: Said, call: str) -> None:
    assert said["agent"][call] in {str(number) for number in ATTACKS[call]}


@pytest.mark.parametrize("call", [call for call in ATTACKS if not call.startswith("personality")])
async def test_the_filter_refuses_programs_of_the_verifier(said: Said, call: str, sandbox: Sandbox) -> None:
    allowed = {str(number) for number in ATTACKS[call]}
    if sandbox.type() == "docker" and call.startswith(SIDECARS_OWN):
        assert said["verifier"][call] != "0"
    else:
        assert said["verifier"][call] in allowed


@pytest.mark.parametrize("view", ["agent", "verifier"])
@pytest.mark.parametrize("call", HONEST)
async def test_honest_programs_get_what_they_need(said: Said, call: str, view: str) -> None:
    assert said[view][call] == "0"
