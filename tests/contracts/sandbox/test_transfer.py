"""Files and trees into the sandbox and out of it, between two sides that do not trust each other."""

from __future__ import annotations

import hashlib
import os
import stat
import uuid
from pathlib import Path

import pytest
from harbor.environments.base import BaseEnvironment


@pytest.fixture
def inside() -> str:
    """A path in the sandbox that no other test uses."""
    return f"/tmp/{uuid.uuid4().hex[:8]}"


async def _read(sandbox: BaseEnvironment, path: str) -> str | None:
    result = await sandbox.exec(f"cat '{path}'")
    return result.stdout or "" if result.return_code == 0 else None


async def test_file_goes_in_and_comes_out(sandbox: BaseEnvironment, inside: str, tmp_path: Path) -> None:
    (tmp_path / "source").write_bytes(bytes(range(256)))
    await sandbox.exec(f"mkdir -p {inside}")
    await sandbox.upload_file(source_path=tmp_path / "source", target_path=f"{inside}/target name")
    await sandbox.download_file(source_path=f"{inside}/target name", target_path=tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == bytes(range(256))


async def test_file_into_a_directory_that_is_not_there(sandbox: BaseEnvironment, inside: str, tmp_path: Path) -> None:
    (tmp_path / "source").write_text("deep")
    await sandbox.upload_file(source_path=tmp_path / "source", target_path=f"{inside}/a/b/c")
    assert await _read(sandbox, f"{inside}/a/b/c") == "deep"


async def test_uploaded_file_replaces(sandbox: BaseEnvironment, inside: str, tmp_path: Path) -> None:
    await sandbox.exec(f"mkdir -p {inside}; echo a much longer text than before > {inside}/file")
    (tmp_path / "source").write_text("new")
    await sandbox.upload_file(source_path=tmp_path / "source", target_path=f"{inside}/file")
    assert await _read(sandbox, f"{inside}/file") == "new"


async def test_modes(sandbox: BaseEnvironment, inside: str, tmp_path: Path) -> None:
    source = tmp_path / "tree"
    source.mkdir()
    for name, mode in (("script.sh", 0o755), ("secret", 0o600), ("plain", 0o644)):
        (source / name).write_text("#!/bin/sh\necho ran\n")
        (source / name).chmod(mode)
    await sandbox.upload_dir(source_dir=source, target_dir=inside)
    listing = (await sandbox.exec(f"cd {inside}; stat -c '%n %a' *; ./script.sh")).stdout or ""
    assert listing.split("\n")[:4] == ["plain 644", "script.sh 755", "secret 600", "ran"]
    await sandbox.download_dir(source_dir=inside, target_dir=tmp_path / "back")
    assert stat.S_IMODE((tmp_path / "back" / "script.sh").stat().st_mode) & 0o111


async def test_uploaded_files_belong_to_root(sandbox: BaseEnvironment, inside: str, tmp_path: Path) -> None:
    source = tmp_path / "tree"
    source.mkdir()
    (source / "file").write_text("x")
    os.chown(source / "file", 4242, 4242)
    await sandbox.upload_dir(source_dir=source, target_dir=inside)
    assert ((await sandbox.exec(f"cat {inside}/file && echo readable", user="root")).stdout) == "xreadable\n"


async def test_tree_goes_in_and_comes_out(sandbox: BaseEnvironment, inside: str, tmp_path: Path) -> None:
    source = tmp_path / "tree"
    (source / "a" / "b").mkdir(parents=True)
    (source / "empty").mkdir()
    (source / "a" / "b" / "ümläut name").write_text("deep")
    (source / ".hidden").write_text("dot")
    (source / ("n" * 200)).write_text("long")
    await sandbox.upload_dir(source_dir=source, target_dir=f"{inside}/not/there/yet")
    await sandbox.download_dir(source_dir=f"{inside}/not/there/yet", target_dir=tmp_path / "back")
    assert _tree(tmp_path / "back") == _tree(source)


async def test_tree_is_merged(sandbox: BaseEnvironment, inside: str, tmp_path: Path) -> None:
    await sandbox.exec(f"mkdir -p {inside}/sub; echo stays > {inside}/sub/old; echo old > {inside}/same")
    source = tmp_path / "tree"
    (source / "sub").mkdir(parents=True)
    (source / "sub" / "new").write_text("new\n")
    (source / "same").write_text("replaced\n")
    await sandbox.upload_dir(source_dir=source, target_dir=inside)
    listing = await sandbox.exec(f"cat {inside}/sub/old {inside}/sub/new {inside}/same")
    assert listing.stdout == "stays\nnew\nreplaced\n"


async def test_empty_tree(sandbox: BaseEnvironment, inside: str, tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    await sandbox.upload_dir(source_dir=tmp_path / "tree", target_dir=inside)
    assert (await sandbox.exec(f'test -d {inside} && [ -z "$(ls -A {inside})" ]')).return_code == 0
    await sandbox.download_dir(source_dir=inside, target_dir=tmp_path / "back")
    assert _tree(tmp_path / "back") == {}


async def test_links_inside_a_tree_survive(sandbox: BaseEnvironment, inside: str, tmp_path: Path) -> None:
    source = tmp_path / "tree"
    source.mkdir()
    (source / "file").write_text("text")
    (source / "link").symlink_to("file")
    await sandbox.upload_dir(source_dir=source, target_dir=inside)
    assert ((await sandbox.exec(f"readlink {inside}/link")).stdout or "").strip() == "file"
    await sandbox.download_dir(source_dir=inside, target_dir=tmp_path / "back")
    assert (tmp_path / "back" / "link").read_text() == "text"


async def test_large_file(sandbox: BaseEnvironment, inside: str, tmp_path: Path) -> None:
    block = os.urandom(1024 * 1024)
    with (tmp_path / "large").open("wb") as file:
        for _ in range(48):
            file.write(block)
    digest = hashlib.sha256((tmp_path / "large").read_bytes()).hexdigest()
    await sandbox.exec(f"mkdir -p {inside}")
    await sandbox.upload_file(source_path=tmp_path / "large", target_path=f"{inside}/large")
    assert ((await sandbox.exec(f"sha256sum {inside}/large")).stdout or "").split()[0] == digest
    await sandbox.download_file(source_path=f"{inside}/large", target_path=tmp_path / "back")
    assert hashlib.sha256((tmp_path / "back").read_bytes()).hexdigest() == digest


async def test_what_is_not_there_is_an_error(sandbox: BaseEnvironment, inside: str, tmp_path: Path) -> None:
    with pytest.raises(Exception, match=r"(?i)no such|not find|not found|does not exist"):
        await sandbox.download_file(source_path=f"{inside}/nothing", target_path=tmp_path / "x")
    with pytest.raises(Exception, match=r"(?i)no such|not find|not found|does not exist"):
        await sandbox.download_dir(source_dir=f"{inside}/nothing", target_dir=tmp_path / "y")


async def test_files_of_other_users_come_out(sandbox: BaseEnvironment, inside: str, tmp_path: Path) -> None:
    await sandbox.exec(f"mkdir -m 777 {inside}")
    await sandbox.exec(f"cd {inside} && umask 077 && mkdir own && echo mine > own/file", user="agent")
    await sandbox.download_dir(source_dir=inside, target_dir=tmp_path / "back")
    assert (tmp_path / "back" / "own" / "file").read_text() == "mine\n"


async def test_special_files_are_left_out(sandbox: BaseEnvironment, inside: str, tmp_path: Path) -> None:
    await sandbox.exec(f"mkdir {inside}; cd {inside}; mkfifo pipe; echo kept > file")
    await sandbox.download_dir(source_dir=inside, target_dir=tmp_path / "back")
    assert (tmp_path / "back" / "file").read_text() == "kept\n"
    assert (
        not stat.S_ISREG(os.lstat(tmp_path / "back" / "pipe").st_mode)
        if (tmp_path / "back" / "pipe").exists()
        else True
    )


async def test_hostile_links_do_not_lead_out_on_download(sandbox: BaseEnvironment, inside: str, tmp_path: Path) -> None:
    """Links to the host's files neither bring their content nor stay as links that a reader would follow."""
    secret = tmp_path / "secret"
    secret.write_text("of the host")
    await sandbox.exec(
        f"mkdir -p {inside}/sub; cd {inside}; ln -s {secret} absolute; ln -s {tmp_path} sub/directory;"
        f"ln -s ../../../../../../../../..{secret} upwards; ln -s /etc/hostname reward.txt; echo kept > file"
    )
    await sandbox.download_dir(source_dir=inside, target_dir=tmp_path / "back")
    assert (tmp_path / "back" / "file").read_text() == "kept\n"
    for path in (tmp_path / "back").rglob("*"):
        assert not path.is_symlink() or path.resolve().is_relative_to(tmp_path / "back")
        if path.is_file():
            assert "of the host" not in path.read_text()


async def test_download_does_not_write_through_links(sandbox: BaseEnvironment, inside: str, tmp_path: Path) -> None:
    """An archive that makes a link and then writes below it writes nowhere else."""
    victim = tmp_path / "victim"
    victim.mkdir()
    back = tmp_path / "back"
    await sandbox.exec(f"mkdir -p {inside}; ln -s {victim} {inside}/way")
    await _ignore_errors(sandbox.download_dir(source_dir=inside, target_dir=back))
    await sandbox.exec(f"rm {inside}/way; mkdir {inside}/way; echo x > {inside}/way/file")
    await _ignore_errors(sandbox.download_dir(source_dir=inside, target_dir=back))
    assert list(victim.iterdir()) == []


async def test_link_to_a_host_file_is_not_followed_on_the_host(
    sandbox: BaseEnvironment, inside: str, tmp_path: Path
) -> None:
    """A link is resolved in the sandbox, where the same path is another file."""
    host_file = tmp_path / "secret"
    host_file.write_text("of the host")
    await sandbox.exec(f"mkdir -p {inside} {tmp_path}; echo of the sandbox > {host_file}; ln -s {host_file} {inside}/l")
    await sandbox.download_file(source_path=f"{inside}/l", target_path=tmp_path / "back")
    assert not (tmp_path / "back").is_symlink()
    assert (tmp_path / "back").read_text() == "of the sandbox\n"


async def test_upload_does_not_follow_links_to_the_host(sandbox: BaseEnvironment, inside: str, tmp_path: Path) -> None:
    """A link planted inside leads to the sandbox's own path of that name, never to the host's."""
    victim = tmp_path / "victim"
    victim.mkdir()
    (tmp_path / "source").write_text("uploaded")
    tree = tmp_path / "tree"
    (tree / "sub").mkdir(parents=True)
    (tree / "sub" / "file").write_text("uploaded")
    await sandbox.exec(f"mkdir -p {victim} {inside}; ln -s {victim} {inside}/way; ln -s {victim} {inside}/sub")
    await _ignore_errors(sandbox.upload_file(source_path=tmp_path / "source", target_path=f"{inside}/way/file"))
    await _ignore_errors(sandbox.upload_dir(source_dir=tree, target_dir=inside))
    assert list(victim.iterdir()) == []
    assert (await sandbox.exec("echo usable")).stdout == "usable\n"


async def _ignore_errors(transfer: object) -> None:
    """Refusing is as good as containing; what matters is what lies on the host afterwards."""
    try:
        await transfer  # type: ignore[misc]
    except Exception as error:
        assert str(error)


def _tree(directory: Path) -> dict[str, str]:
    return {str(path.relative_to(directory)): path.read_text() for path in directory.rglob("*") if path.is_file()}
