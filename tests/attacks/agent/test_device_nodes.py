"""A device node is of no use to an agent: not one that it makes, not one that an image brings, in neither view."""

from __future__ import annotations

import os
import stat
import subprocess
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from seatrial.sandboxes.host.layer_copy import apply_layer
from seatrial.sandboxes.host.private_mounts import PrivateMounts
from seatrial.sandboxes.host.root_mount import RootKind, RootMount
from seatrial.sandboxes.images.assembly import shared_oci_images
from seatrial.sandboxes.images.image import Image, ImageProvider, ImageRequest, LogSink
from seatrial.sandboxes.options import SandboxOptions
from tests.trials import Workplace
from tests.workplace_fixture import Make

PLACES = ("/", "/app", "/tmp", "/logs", "/tests", "/dev/shm", "/var/lib")
TRY = """
for place in "$@"; do
    for kind in "b $DISK" "c 1 1" "c 5 1"; do
        rm -f "$place/node"; mknod "$place/node" $kind 2> /dev/null || continue
        if head -c 1 "$place/node" > /dev/null 2>&1; then echo "read $place $kind"; fi
        if (: >> "$place/node") 2> /dev/null; then echo "written $place $kind"; fi
    done
done
echo tried
"""
GOOD = """
set -e
[ "$(head -c 4 /dev/zero | od -An -tx1 | tr -d ' \\n')" = 00000000 ]
echo x > /dev/null; echo x > /dev/full && exit 1
head -c 1 /dev/urandom > /dev/null
echo good
"""


def _disk() -> str:
    """The numbers of a disk that this machine has."""
    numbers = sorted(Path("/sys/dev/block").iterdir())
    return numbers[-1].name.replace(":", " ")


async def test_nodes_of_the_agent_cannot_be_opened(make: Make, tmp_path: Path) -> None:
    sandbox = await make()
    script = f"set -- {' '.join(PLACES)}; DISK='{_disk()}'; {TRY}"
    assert (await sandbox.exec(script)).stdout == "tried\n"
    await sandbox.upload_dir(tmp_path, "/tests")
    assert (await sandbox.exec(script)).stdout == "tried\n"


async def test_usual_devices_work_in_both_views(make: Make, tmp_path: Path) -> None:
    sandbox = await make()
    assert (await sandbox.exec(GOOD)).stdout == "good\n"
    await sandbox.upload_dir(tmp_path, "/tests")
    assert (await sandbox.exec(GOOD)).stdout == "good\n"


async def test_roots_are_mounted_without_devices(make: Make, tmp_path: Path, workplace: Workplace) -> None:
    sandbox = await make()
    await sandbox.exec("mkdir -p /tests")
    shown = 'awk \'$2 == "/" || $2 ~ "^/(tests|logs)" || $2 == "/dev/shm" {print $2, $4}\' /proc/mounts'
    for _view in ("agent", "grading"):
        lines = ((await sandbox.exec(shown)).stdout or "").splitlines()
        assert lines
        assert [line for line in lines if "nodev" not in line.split()[1].split(",")] == []
        if _view == "agent":
            await sandbox.upload_dir(tmp_path, "/tests")
    assert [line for line in sandbox.facts.protections if line.startswith("device nodes:") and "nodev" in line]


@pytest.mark.sandbox
@pytest.mark.parametrize("kind", ["overlay", "fuse-overlayfs", "copy"])
async def test_nodes_of_an_image_cannot_be_opened(tmp_path: Path, kind: RootKind) -> None:
    await PrivateMounts().carry(_check_root, tmp_path, kind)


def _check_root(directory: Path, kind: RootKind) -> None:
    layer = directory / "layer"
    layer.mkdir()
    (layer / "file").write_text("benign")
    major, minor = map(int, _disk().split())
    os.mknod(layer / "disk", stat.S_IFBLK | 0o666, os.makedev(major, minor))
    os.mknod(layer / "zero", stat.S_IFCHR | 0o666, os.makedev(1, 5))
    (directory / "sandbox").mkdir()
    root = RootMount(directory / "sandbox")
    try:
        assert root.make([layer], [kind]) == kind
        for name in ("disk", "zero"):
            with pytest.raises(OSError, match=r"Permission denied|No such file"):
                os.open(root.merged / name, os.O_RDONLY)
        assert (root.merged / "file").read_text() == "benign"
    finally:
        root.hide()
        root.end()


def test_copied_root_has_files_folders_and_links_only(tmp_path: Path) -> None:
    layer, copy = tmp_path / "layer", tmp_path / "copy"
    deepest = layer
    for path in (layer, copy):
        path.mkdir()
    for _ in range(1500):
        deepest /= "d"
        deepest.mkdir()
    (deepest / "file").write_text("deep")
    (layer / "link").symlink_to("/etc/passwd")
    os.mkfifo(layer / "fifo")
    os.mknod(layer / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    apply_layer(layer, copy)
    assert sorted(path.name for path in copy.iterdir()) == ["d", "link"]
    assert (copy / deepest.relative_to(layer) / "file").read_text() == "deep"
    assert (copy / "link").is_symlink()
    subprocess.run(["rm", "-rf", layer, copy], check=True)  # deeper than pytest's own removal goes


class _WithLayer:
    """The images of a sandbox, each with one more layer on top, which no build would have made."""

    def __init__(self, images: ImageProvider, layer: Path) -> None:
        self._images = images
        self._layer = layer

    async def resolve(self, request: ImageRequest, log: LogSink | None = None) -> Image:
        image = await self._images.resolve(request, log)
        return image.model_copy(update={"layers": (self._layer, *image.layers)})

    def hold(self, image: Image) -> AbstractContextManager[None]:
        return self._images.hold(image)


@pytest.mark.sandbox
async def test_grading_copies_no_special_file_of_the_image(tmp_path: Path, image_cache: Path) -> None:
    layer, tests = tmp_path / "layer", tmp_path / "tests"
    (layer / "tests" / "below").mkdir(parents=True)
    tests.mkdir()
    (tests / "test.sh").write_text("true")
    for folder in (layer / "tests", layer / "tests" / "below"):
        major, minor = map(int, _disk().split())
        os.mknod(folder / "disk", stat.S_IFBLK | 0o666, os.makedev(major, minor))
        os.mknod(folder / "zero", stat.S_IFCHR | 0o666, os.makedev(1, 5))
        os.mkfifo(folder / "fifo")
        os.mknod(folder / "socket", stat.S_IFSOCK | 0o666)
        (folder / "regular").write_text("benign")
    workplace = Workplace(tmp_path, image_cache)
    images = shared_oci_images(SandboxOptions(**workplace.options())).resolver
    sandbox = workplace.sandbox(given={"images": _WithLayer(images, layer)})
    try:
        await sandbox.start(force_build=False)
        await sandbox.upload_dir(tests, "/tests")
        found = (await sandbox.exec("cd /tests && find . ! -type d | sort; cat regular below/regular")).stdout
    finally:
        await sandbox.stop(delete=True)
    assert found == "./below/regular\n./regular\n./test.sh\nbenignbenign"
