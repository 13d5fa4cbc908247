"""Device nodes in the layers of an image that somebody else made never reach a sandbox."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from seatrial.errors import ImageFault
from seatrial.sandboxes.images.storage import remove_nodes

DISK = os.makedev(7, 0)
MEMORY = os.makedev(1, 1)


@pytest.mark.parametrize(("kind", "device"), [(stat.S_IFBLK, DISK), (stat.S_IFCHR, MEMORY)])
@pytest.mark.parametrize("place", ["disk", "usr/share/deep/er/disk", "tests/disk"])
def test_nodes_are_removed(tmp_path: Path, kind: int, device: int, place: str) -> None:
    node = tmp_path / place
    node.parent.mkdir(parents=True, exist_ok=True)
    os.mknod(node, kind | 0o666, device)
    assert remove_nodes([tmp_path]) == 1
    assert not node.exists()


def test_files_links_and_marks_of_deleted_files_stay(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("kept")
    (tmp_path / "link").symlink_to("/dev/zero")
    os.mknod(tmp_path / "deleted", stat.S_IFCHR, os.makedev(0, 0))
    assert remove_nodes([tmp_path]) == 0
    assert (tmp_path / "file").read_text() == "kept"
    assert (tmp_path / "link").is_symlink()
    assert stat.S_ISCHR((tmp_path / "deleted").lstat().st_mode)


def test_a_link_to_a_folder_outside_is_not_followed(tmp_path: Path) -> None:
    outside, layer = tmp_path / "outside", tmp_path / "layer"
    outside.mkdir()
    layer.mkdir()
    os.mknod(outside / "disk", stat.S_IFBLK | 0o666, DISK)
    (layer / "way-out").symlink_to(outside)
    assert remove_nodes([layer]) == 0
    assert (outside / "disk").is_block_device()


def test_a_layer_too_deep_to_search_is_refused(tmp_path: Path) -> None:
    here = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    for _ in range(20):  # 20 names of 250 bytes are more than a path may have
        os.mkdir("d" * 250, dir_fd=here)
        inner = os.open("d" * 250, os.O_RDONLY | os.O_DIRECTORY, dir_fd=here)
        os.close(here)
        here = inner
    os.mknod("disk", stat.S_IFBLK | 0o666, DISK, dir_fd=here)
    os.close(here)
    with pytest.raises(ImageFault, match="cannot be looked into"):
        remove_nodes([tmp_path])
