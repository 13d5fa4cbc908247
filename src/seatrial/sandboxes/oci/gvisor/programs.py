"""Two programs of a few instructions that every gVisor sandbox contains, written as machine code.

No program of the image can be trusted with this, and no tool of this machine does it:

- ``enter`` puts a seccomp filter on itself and becomes the command. gVisor applies a container's filter to the first
  process only, not to the commands that are run later. Without it an agent could make a user namespace, mount the
  sandbox's cgroups in it and lift its own process limit.
- ``init`` is a container's first process. It waits, and ignores the ends of its children, so that orphans are reaped.

Both are for x86-64.
"""

from __future__ import annotations

import errno
import struct
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

_BASE = 0x400000
_HEADERS = 64 + 56
_ENTER = bytes.fromhex(
    "b89d000000 bf26000000 be01000000 31d2 4531d2 4531c0 0f05"  # prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    "b89d000000 bf16000000 be02000000 488d1533000000 0f05"  # prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &what follows)
    "85c0 751a"  # if it fails, go to the end
    "488b0c24 488d742418 488b7c2410 488d54cc10"  # argc, &argv[2], argv[1], envp
    "b83b000000 0f05"  # execve(argv[1], &argv[2], envp)
    "bf7e000000 83f8fe 7502 ffc7 b83c000000 0f05"  # exit(127) if there is no such file, else exit(126)
)
_INIT = bytes.fromhex(
    "b80d000000 bf11000000 488d3513000000 31d2 41ba08000000 0f05"  # rt_sigaction(SIGCHLD, &what follows, NULL, 8)
    "b822000000 0f05 ebf7"  # pause(), again and again
)
_IGNORE = struct.pack("<4Q", 1, 0, 0, 0)

_ARCHITECTURE = 0xC000003E
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000
_LOAD, _IF_EQUAL, _IF_ANY, _RETURN = 0x20, 0x15, 0x45, 0x06
_NUMBER_AT, _ARCHITECTURE_AT, _FLAGS_AT = 0, 4, 16
_NEW_NAMESPACES = 0x7E020000
_CLONE, _CLONE3 = 56, 435
_REFUSED = {
    "syslog": 103,
    "pivot_root": 155,
    "mount": 165,
    "umount2": 166,
    "sethostname": 170,
    "setdomainname": 171,
    "quotactl": 179,
    "lookup_dcookie": 212,
    "add_key": 248,
    "request_key": 249,
    "keyctl": 250,
    "unshare": 272,
    "perf_event_open": 298,
    "fanotify_init": 300,
    "name_to_handle_at": 303,
    "open_by_handle_at": 304,
    "setns": 308,
    "bpf": 321,
    "userfaultfd": 323,
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "fspick": 433,
    "pidfd_getfd": 438,
    "mount_setattr": 442,
}


@cache
def tools(cache: Path, busybox: Path) -> Path:
    """A directory with ``busybox``, ``enter`` and ``init`` in it, made once for all sandboxes."""
    place = cache / "gvisor"
    wanted = {"enter": enter(), "init": init(), "busybox": busybox.read_bytes()}
    if all(_holds(place / name, content) for name, content in wanted.items()):
        return place
    cache.mkdir(parents=True, exist_ok=True)
    made = Path(mkdtemp(dir=cache, prefix=".gvisor-"))
    made.chmod(0o755)
    for name, content in wanted.items():
        (made / name).write_bytes(content)
        (made / name).chmod(0o755)
    place.mkdir(exist_ok=True)
    place.chmod(0o755)
    for name in wanted:
        (made / name).replace(place / name)
    made.rmdir()
    return place


def enter() -> bytes:
    rules = _filter()
    at = _BASE + _HEADERS + len(_ENTER) + 16
    return _program(_ENTER + struct.pack("<H6xQ", len(rules) // 8, at) + rules)


def init() -> bytes:
    return _program(_INIT + _IGNORE)


def _filter() -> bytes:
    """What is refused to commands: what could change the sandbox they are in. The rest is gVisor's to answer."""
    refuse = (_RETURN, 0, 0, _REFUSE | errno.EPERM)
    lines = [(_LOAD, 0, 0, _ARCHITECTURE_AT), (_IF_EQUAL, 1, 0, _ARCHITECTURE), refuse, (_LOAD, 0, 0, _NUMBER_AT)]
    for number in _REFUSED.values():
        lines += [(_IF_EQUAL, 0, 1, number), refuse]
    # The C library falls back to ``clone`` where ``clone3``, whose flags a filter cannot see, does not exist.
    lines += [(_IF_EQUAL, 0, 1, _CLONE3), (_RETURN, 0, 0, _REFUSE | errno.ENOSYS)]
    lines += [(_IF_EQUAL, 0, 3, _CLONE), (_LOAD, 0, 0, _FLAGS_AT), (_IF_ANY, 0, 1, _NEW_NAMESPACES), refuse]
    lines += [(_RETURN, 0, 0, _ALLOW)]
    return b"".join(struct.pack("<HBBI", *line) for line in lines)


def _program(content: bytes) -> bytes:
    """A static ELF file with one segment, which begins with its first instruction."""
    size = _HEADERS + len(content)
    kind = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    head = struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, _BASE + _HEADERS, 64, 0, 0, 64, 56, 1, 64, 0, 0)
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, _BASE, _BASE, size, size, 0x1000)
    return kind + head + segment + content


def _holds(path: Path, content: bytes) -> bool:
    try:
        return path.read_bytes() == content
    except OSError:
        return False
