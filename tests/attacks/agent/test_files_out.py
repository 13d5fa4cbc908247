"""What is done with privileges inside a sandbox reads and writes nothing but files of its own view, within limits."""

from __future__ import annotations

import stat
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from seatrial.sandboxes.host.transfer import Transfer
from seatrial.sandboxes.host.view import SandboxView
from seatrial.sandboxes.sandbox import Sandbox
from tests.trials import Workplace
from tests.workplace_fixture import DOCKER, OCI

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture(scope="module", params=[OCI, DOCKER])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, image_cache: Path) -> Workplace:
    engine = request.getfixturevalue("container_engine") if request.param == "docker" else None
    return Workplace(tmp_path_factory.mktemp("place"), image_cache, engine)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sandbox(place: Workplace) -> AsyncIterator[Sandbox]:
    """One for all: each test has directories of its own."""
    shared = place.sandbox()
    await shared.start(force_build=False)
    yield shared
    await shared.stop(delete=True)


@pytest.fixture
def inside(tmp_path: Path) -> str:
    return f"/attack/{tmp_path.name}"


async def _made(sandbox: Sandbox, inside: str, script: str) -> None:
    result = await sandbox.exec(f"mkdir -p {inside} && cd {inside} && {script}", timeout_sec=120)
    assert result.return_code == 0, result.stderr


MAGIC = (
    "/proc/1/root/etc/passwd",
    "/proc/self/root/etc/passwd",
    "/proc/1/environ",
    "/proc/self/mem",
    "/sys/kernel/notes",
)


@pytest.mark.parametrize("link", MAGIC)
async def test_no_file_of_the_kernel_comes_out(sandbox: Sandbox, inside: str, tmp_path: Path, link: str) -> None:
    await _made(sandbox, inside, f"ln -s {link} file")
    with pytest.raises(OSError, match=r"."):
        await sandbox.download_file(f"{inside}/file", tmp_path / "file")
    assert not (tmp_path / "file").exists()


@pytest.mark.parametrize("directory", ["/proc", "/sys", "/proc/1/root", "/proc/self/cwd"])
async def test_no_directory_of_the_kernel_comes_out(
    sandbox: Sandbox, inside: str, tmp_path: Path, directory: str
) -> None:
    await _made(sandbox, inside, f"ln -s {directory} way")
    with pytest.raises(OSError, match=r"."):
        await sandbox.download_dir(f"{inside}/way", tmp_path / "out")
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())


async def test_files_come_out_by_a_link_of_the_sandbox(sandbox: Sandbox, inside: str, tmp_path: Path) -> None:
    """The harmless twin: a link inside the sandbox is followed inside the sandbox."""
    await _made(sandbox, inside, "mkdir real; echo text > real/file; ln -s real way; ln -s $PWD/real/file direct")
    await sandbox.download_file(f"{inside}/way/file", tmp_path / "file")
    await sandbox.download_file(f"{inside}/direct", tmp_path / "direct")
    await sandbox.download_dir(f"{inside}/way", tmp_path / "tree")
    assert {(tmp_path / name).read_text() for name in ("file", "direct", "tree/file")} == {"text\n"}


WAYS_IN = ("/proc/1/root/way", "/proc/self/cwd/way", "/proc/1/root")


@pytest.mark.parametrize("link", WAYS_IN)
async def test_nothing_is_put_through_a_process(sandbox: Sandbox, inside: str, tmp_path: Path, link: str) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "planted").write_text("x")
    await _made(sandbox, inside, f"ln -s {link} way")
    with pytest.raises(OSError, match=r"."):
        await sandbox.upload_file(tmp_path / "tree" / "planted", f"{inside}/way/planted")
    with pytest.raises(OSError, match=r"."):
        await sandbox.upload_dir(tmp_path / "tree", f"{inside}/way")
    assert not await sandbox.is_dir(f"{inside}/way") and not await sandbox.is_file(f"{inside}/way/etc/passwd")
    assert (await sandbox.exec("test -e /planted || test -e /way")).return_code == 1


async def test_script_behind_a_process_is_not_made_executable(sandbox: Sandbox, inside: str) -> None:
    await _made(sandbox, inside, "echo > own; echo > script; ln -s /proc/1/root/etc/hostname way; chmod 600 script")
    await sandbox.exec(f"chmod +x {inside}/script")
    assert (await sandbox.exec(f"test -x {inside}/script")).return_code == 0
    if isinstance(sandbox.files, SandboxView):
        assert not await sandbox.files.carry(Transfer.make_executable, f"{inside}/way")


NODES = {
    "pipe": "mkfifo it",
    "socket": "perl -MIO::Socket::UNIX -e 'IO::Socket::UNIX->new(Local => \"it\", Listen => 1) or die'",
    "device": "mknod it c 1 5 || mkfifo it",
    "disk": "mknod it b 7 0 || mkfifo it",
}


@pytest.mark.parametrize("node", NODES.values(), ids=NODES.keys())
async def test_only_files_come_out(sandbox: Sandbox, inside: str, tmp_path: Path, node: str) -> None:
    await _made(sandbox, inside, f"echo text > file && {{ {node}; }} 2> /dev/null")
    await sandbox.download_dir(inside, tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["file"]
    with pytest.raises(OSError, match=r"."):
        await sandbox.download_file(f"{inside}/it", tmp_path / "it")


async def test_swapped_file_is_never_a_pipe(sandbox: Sandbox, inside: str, tmp_path: Path) -> None:
    """A file that turns into a pipe between two looks would be waited for until somebody writes to it."""
    await _made(
        sandbox,
        inside,
        'echo text > log.txt; mkfifo pipe; (setsid perl -e \'my ($a, $b) = ("log.txt\\0", "pipe\\0");'
        " syscall(316, -100, $a, -100, $b, 2) for 1..3000000' > /dev/null 2>&1 &)",
    )
    for _ in range(20):
        await sandbox.download_dir(inside, tmp_path / "out")
    for name in ("log.txt", "pipe"):
        assert not (tmp_path / "out" / name).exists() or (tmp_path / "out" / name).read_text() == "text\n"
    await sandbox.exec(f"rm -rf {inside}")


async def test_sparse_file_takes_no_room(sandbox: Sandbox, inside: str, tmp_path: Path) -> None:
    await _made(sandbox, inside, "echo head > sparse; truncate -s 100G sparse; echo tail >> sparse")
    await sandbox.download_dir(inside, tmp_path / "out")
    status = (tmp_path / "out" / "sparse").stat()
    assert status.st_size == (100 << 30) + 5 and status.st_blocks * 512 < 1 << 20
    with (tmp_path / "out" / "sparse").open("rb") as copy:
        assert copy.read(5) == b"head\n" and copy.seek(100 << 30) and copy.read() == b"tail\n"


LIMITED = {
    "files": ("for i in $(seq 60); do echo > f$i; done", {"files": 20}, "more than 20 files"),
    "bytes": ("head -c 3M /dev/urandom > large; echo > small", {"bytes": 2 << 20}, "more than 2 MB"),
    "depth": ("for i in $(seq 30); do mkdir d; cd d; done; echo > deep", {"depth": 10}, "deeper than 10"),
    "path": ("for i in $(seq 6); do n=$(printf %0200d 0); mkdir $n; cd $n; done", {}, "longer than 900 bytes"),
    "nested": ('perl -e \'for (1..3000) { mkdir "d"; chdir "d" }\'', {}, "deeper than 64"),
    "time": ("for i in $(seq 9); do echo > f$i; done", {"seconds": -1.0}, "no more time"),
}


@pytest.mark.parametrize(("script", "limits", "reason"), LIMITED.values(), ids=LIMITED.keys())
async def test_download_has_limits(
    sandbox: Sandbox, inside: str, tmp_path: Path, script: str, limits: dict[str, int], reason: str
) -> None:
    await _made(sandbox, inside, f"echo text > a; ({script})")
    limited = replace(sandbox.transfer_limits, **limits)
    left_out = await sandbox.files.get_tree(inside, tmp_path / "out", limited, ("a",))
    assert any(reason in line for line in left_out.lines()), left_out.lines()
    assert len(left_out.lines()) <= 51
    assert "seconds" in limits or (tmp_path / "out" / "a").read_text() == "text\n"


async def test_what_is_left_out_is_told_in_few_plain_words(sandbox: Sandbox, inside: str, tmp_path: Path) -> None:
    await _made(sandbox, inside, "for i in $(seq 200); do mkfifo \"$(printf 'p\\033[31m\\n%d' $i)\"; done; echo > file")
    lines = (await sandbox.files.get_tree(inside, tmp_path / "out", sandbox.transfer_limits)).lines()
    assert len(lines) == 51 and "150 more" in lines[-1]
    assert all(line.isprintable() for line in lines)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["file"]


async def test_privileges_of_files_stay_behind(sandbox: Sandbox, inside: str, tmp_path: Path) -> None:
    await _made(sandbox, inside, "cp /bin/true suid; chmod 6755 suid; mkdir d; chmod 2777 d; chmod 0 /dev/null; true")
    await sandbox.download_dir(inside, tmp_path / "out")
    assert stat.S_IMODE((tmp_path / "out" / "suid").stat().st_mode) == 0o755
    assert not stat.S_IMODE((tmp_path / "out" / "d").stat().st_mode) & 0o6000
    await sandbox.exec("chmod 666 /dev/null")


async def test_live_view_sees_only_files(sandbox: Sandbox) -> None:
    script = (
        "mkdir -p /logs/agent; cd /logs/agent; rm -rf *; mkfifo pipe.txt; ln -s /etc/passwd link.txt;"
        " ln -s /proc/1/environ env.txt; echo told > agent.txt; for i in $(seq 20); do mkdir d$i.txt; done"
    )
    assert (await sandbox.exec(script)).return_code == 0
    views = await sandbox.look({}, lambda name: True)
    assert views is not None and {view.name: view.data for view in views} == {"agent/agent.txt": b"told\n"}


@pytest.mark.parametrize("link", ["/proc/1/root/etc", "/etc", "/proc/1/root/logs/verifier"])
async def test_live_view_follows_no_link(sandbox: Sandbox, link: str) -> None:
    await sandbox.exec(f"rm -rf /logs/agent; ln -s {link} /logs/agent")
    try:
        assert await sandbox.look({}, lambda name: True) == []
    finally:
        await sandbox.exec("rm /logs/agent; mkdir -p /logs/agent")


ACCOUNTS = {
    "process": "rm /etc/passwd; ln -s /proc/1/root/etc/passwd /etc/passwd",
    "numbers": "echo 'agent:x:99999999999:5::/:/bin/sh' > /etc/passwd",
}


@pytest.mark.parametrize("change", ACCOUNTS.values(), ids=ACCOUNTS.keys())
async def test_account_files_are_only_read_as_files(sandbox: Sandbox, change: str) -> None:
    await sandbox.exec("cp -p /etc/passwd /etc/passwd.kept")
    await sandbox.exec(change)
    try:
        assert (await sandbox.exec("echo root", user=0, timeout_sec=60)).stdout == "root\n"
    finally:
        await sandbox.exec("rm -f /etc/passwd; mv /etc/passwd.kept /etc/passwd", user=0)
    assert (await sandbox.exec("id -u", user="agent")).stdout == "1234\n"
