"""A file system of a fixed size for one sandbox: ext4 in a sparse file that has no name, behind a loop device.

``pod_directory`` puts everything there that a sandbox can write to, so the kernel itself holds the storage limit: bytes
and inodes, files that were unlinked while open, paths of any length. It costs 1.5 ms a start, since the file system
is made once for each size and copied from memory afterwards, and removing a sandbox does not walk its files.

A part of each file system is held back until grading begins (``Disk.make_room``): an agent that filled its own part
must not keep the verifier from writing.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import stat
import struct
import subprocess
import tempfile
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from seatrial.sandboxes.host.in_root import closing
from seatrial.sandboxes.host.private_mounts import MS_NODEV, MS_NOSUID, mount, unmount
from seatrial.system.fair_threads import yield_turn

VERIFIER_ROOM = 256 << 20
"""Bytes that are held back for the verifier."""

_libc = ctypes.CDLL(None, use_errno=True)
_CHUNK = 1 << 20
_BLOCK = 4096
_INODE = 256
_BYTES_FOR_EACH_INODE = 16384
_FEWEST_INODES = 1 << 16
_FEATURES = (
    "none,ext_attr,dir_index,filetype,extent,flex_bg,sparse_super2,large_file,huge_file,uninit_bg,dir_nlink,extra_isize"
)
_OPTIONS = "noinit_itable,nobarrier"
_HELD_BACK = ".held-back"
_FULL_BYTES = 1 << 20
_FULL_INODES = 16
_WORTH_DROPPING = 32 << 20

_LOOP_CONTROL = "/dev/loop-control"
_LOOP_MAJOR = 7
_LOOP_CTL_GET_FREE = 0x4C82
_LOOP_CONFIGURE = 0x4C0A
_LO_FLAGS_AUTOCLEAR = 4
_LO_FLAGS_DIRECT_IO = 16
_LOOP_CONFIG = struct.Struct("=II 52x I 176x 64x")
"""``struct loop_config``: the file, the block size, and of ``struct loop_info64`` the flags alone."""
_ROUNDS = 200

_FS_IOC_SHUTDOWN = 0x8004587D
_WITHOUT_WRITING = struct.pack("I", 2)
_FITRIM = 0xC0185879


def inodes_for(limit: int) -> int:
    """The number of files and folders for a storage limit in bytes."""
    return max(limit // _BYTES_FOR_EACH_INODE, _FEWEST_INODES)


@dataclass(frozen=True, slots=True)
class _Template:
    """A new file system: where its image is not zero."""

    size: int
    pieces: tuple[tuple[int, bytes], ...]


class DiskImages:
    """Makes disks, with a cached template for each size. Blocking; for threads of ``PrivateMounts``."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._templates: dict[int, _Template] = {}
        self._lock = threading.Lock()

    def make(self, place: Path, limit: int) -> Disk:
        """A disk mounted at ``place`` with ``limit`` bytes to fill. ``OSError`` where this machine cannot make one."""
        template = self._template(limit)
        image = _nameless_file(self._directory)
        try:
            os.ftruncate(image, template.size)
            for offset, content in template.pieces:
                os.pwrite(image, content, offset)
            _mount_image(image, place)
            return Disk(place, image, limit)
        except BaseException:
            os.close(image)
            raise

    def restore(self, place: Path, limit: int, copy: Path) -> Disk:
        """A disk that begins with what ``Disk.copy_to`` wrote."""
        image = _nameless_file(self._directory)
        try:
            with closing(os.open(copy, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)) as source:
                size = os.fstat(source).st_size
                if size != self._template(limit).size:
                    raise OSError(errno.EINVAL, "the kept disk has another size than this sandbox")
                _copy_written(source, image, size)
            _mount_image(image, place)
            return Disk(place, image, limit)
        except BaseException:
            os.close(image)
            raise

    def _template(self, limit: int) -> _Template:
        with self._lock:
            if limit not in self._templates:
                self._templates[limit] = _new_template(self._directory, limit)
            return self._templates[limit]


class Disk:
    """One sandbox's file system, from ``DiskImages.make`` to ``end``."""

    def __init__(self, place: Path, image: int, limit: int) -> None:
        self._place = place
        self._image = image
        self._limit = limit
        self._top = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._free_at_first = self._free()
        self._is_hidden = False
        self._lock = threading.Lock()

    @property
    def path(self) -> Path:
        """Where this process finds it; after ``hide`` through a descriptor, so that it is in no mount table."""
        return Path(f"/proc/self/fd/{self._top}") if self._is_hidden else self._place

    @property
    def used(self) -> int:
        """Bytes that the sandbox has filled."""
        return max(self._free_at_first - self._free(), 0)

    @property
    def is_full(self) -> bool:
        status = os.fstatvfs(self._top)
        return status.f_bavail * status.f_frsize < _FULL_BYTES or status.f_favail < _FULL_INODES

    @property
    def taken(self) -> int:
        """Bytes that it takes of the machine's disk, with blocks of files that were deleted."""
        return os.fstat(self._image).st_blocks * 512

    def copy_to(self, target: Path) -> None:
        """Copies the whole disk as it is now; parts that were never written stay holes. The caller sees to it that
        nobody writes meanwhile."""
        if _libc.syncfs(self._top) != 0:
            raise OSError(ctypes.get_errno(), "syncfs")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with closing(os.open(target, flags, 0o600)) as copy:
            _copy_written(self._image, copy, os.fstat(self._image).st_size)

    def make_room(self) -> None:
        """Gives the verifier what was held back for it."""
        with suppress(FileNotFoundError):
            before = self._free()
            os.unlink(_HELD_BACK, dir_fd=self._top)
            self._free_at_first += self._free() - before

    def trim(self) -> None:
        """Gives blocks of deleted files back to the machine's disk."""
        with suppress(OSError, ValueError):  # ioctl raises ValueError once the disk has ended
            fcntl.ioctl(self._top, _FITRIM, struct.pack("QQQ", 0, (1 << 64) - 1, 1 << 20))

    def hide(self) -> None:
        """Unmounts it from this process's namespace; the containers keep their mounts."""
        if not self._is_hidden:
            self._is_hidden = True
            unmount(self._place)

    def end(self) -> None:
        """Call it once no process uses the disk. Unwritten data is dropped."""
        with self._lock:
            if self._top < 0:
                return
            if self.used > _WORTH_DROPPING:
                with suppress(OSError):
                    fcntl.ioctl(self._top, _FS_IOC_SHUTDOWN, _WITHOUT_WRITING)
            with suppress(OSError):
                self.hide()
            top, self._top = self._top, -1
            os.close(top)
            os.close(self._image)

    def _free(self) -> int:
        status = os.fstatvfs(self._top)
        return status.f_bavail * status.f_frsize


def _new_template(directory: Path, limit: int) -> _Template:
    inodes = inodes_for(limit)
    size = -(-(limit + limit // 64 + inodes * _INODE + VERIFIER_ROOM + (32 << 20)) // _BLOCK) * _BLOCK
    with tempfile.TemporaryDirectory(dir=directory, prefix=".template-") as scratch:
        file, place = Path(scratch) / "image", Path(scratch) / "mounted"
        place.mkdir()
        with closing(os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)) as image:
            os.ftruncate(image, size)
            _make_file_system(file, inodes)
            _mount_image(image, place)
            try:
                _hold_back(place, limit)
            finally:
                unmount(place, at_once=False)
            return _Template(size, tuple(_pieces(image, size)))


def _make_file_system(file: Path, inodes: int) -> None:
    options = f"-q -F -O {_FEATURES} -E lazy_itable_init=1,nodiscard,num_backup_sb=0 -m 0 -b {_BLOCK} -I {_INODE}"
    command = ["mkfs.ext4", *options.split(), "-N", str(inodes), str(file)]
    path = f"{os.defpath}:/usr/sbin:/sbin"
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=60, env={"PATH": path})
    except subprocess.SubprocessError as error:
        said = getattr(error, "stderr", None) or b""
        raise OSError(errno.EIO, f"mkfs.ext4: {said.decode(errors='replace').strip() or error}") from None


def _hold_back(place: Path, limit: int) -> None:
    """Leaves exactly ``limit`` bytes free."""
    (place / "lost+found").rmdir()
    with closing(os.open(place / _HELD_BACK, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)) as file:
        status = os.statvfs(place)
        os.posix_fallocate(file, 0, status.f_bavail * status.f_frsize - limit)


def _pieces(image: int, size: int) -> list[tuple[int, bytes]]:
    found: list[tuple[int, bytes]] = []
    end = 0
    while end < size:
        try:
            begin = os.lseek(image, end, os.SEEK_DATA)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            break
        end = os.lseek(image, begin, os.SEEK_HOLE)
        for offset in range(begin, end, _BLOCK):
            block = os.pread(image, min(_BLOCK, end - offset), offset)
            if block.count(0) != len(block):
                found.append((offset, block))
    return found


def _copy_written(source: int, target: int, size: int) -> None:
    os.ftruncate(target, size)
    end = 0
    while end < size:
        try:
            place = os.lseek(source, end, os.SEEK_DATA)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            return
        end = os.lseek(source, place, os.SEEK_HOLE)
        while place < end:
            chunk = os.pread(source, min(_CHUNK, end - place), place)
            if not chunk:
                return
            yield_turn()
            os.pwrite(target, chunk, place)
            place += len(chunk)


def _mount_image(image: int, place: Path) -> None:
    """The loop device is freed with the mount's last user."""
    with closing(_loop_device(image, place.parent)) as device:
        mount(f"/proc/self/fd/{device}", place, "ext4", MS_NODEV | MS_NOSUID, _OPTIONS)


def _loop_device(image: int, scratch: Path) -> int:
    with closing(os.open(_LOOP_CONTROL, os.O_RDWR | os.O_CLOEXEC)) as control:
        for _ in range(_ROUNDS):
            device = _open_device(fcntl.ioctl(control, _LOOP_CTL_GET_FREE), scratch)
            try:
                flags = _LO_FLAGS_AUTOCLEAR | _LO_FLAGS_DIRECT_IO
                fcntl.ioctl(device, _LOOP_CONFIGURE, _LOOP_CONFIG.pack(image, _BLOCK, flags))
            except OSError as error:
                os.close(device)
                if error.errno != errno.EBUSY:  # another process was faster
                    raise
            else:
                return device
    raise OSError(errno.EBUSY, "no loop device is free")


def _open_device(number: int, scratch: Path) -> int:
    """In a container, ``/dev`` may lack the nodes of devices that came later."""
    try:
        return os.open(f"/dev/loop{number}", os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        node = scratch / f".loop{number}"
        os.mknod(node, stat.S_IFBLK | 0o600, os.makedev(_LOOP_MAJOR, number))
        try:
            return os.open(node, os.O_RDWR | os.O_CLOEXEC)
        finally:
            node.unlink()


def _nameless_file(directory: Path) -> int:
    """A file without a name leaves nothing behind when the worker dies."""
    try:
        return os.open(directory, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL):
            raise
    file, name = tempfile.mkstemp(dir=directory, prefix=".disk-")
    Path(name).unlink()
    return file
