"""Privileges that a process drops: capabilities and system calls.

The API process keeps no capability, cannot gain any by executing a program, and cannot make system calls that could
take over a machine. A worker keeps what sandboxes need. Children inherit this, and it cannot be undone; the first
thread must call it before there are others. Knows Linux and nothing about Seatrial.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from seatrial.system.file_owner import Account
from seatrial.system.landlock import confine_writes

_PR_CAPBSET_READ, _PR_CAPBSET_DROP = 23, 24
_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 22, 2
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
_CAPABILITY_VERSION = 0x20080522

_CAPABILITIES = (
    "chown", "dac_override", "dac_read_search", "fowner", "fsetid", "kill", "setgid", "setuid", "setpcap",
    "linux_immutable", "net_bind_service", "net_broadcast", "net_admin", "net_raw", "ipc_lock", "ipc_owner",
    "sys_module", "sys_rawio", "sys_chroot", "sys_ptrace", "sys_pacct", "sys_admin", "sys_boot", "sys_nice",
    "sys_resource", "sys_time", "sys_tty_config", "mknod", "lease", "audit_write", "audit_control", "setfcap",
    "mac_override", "mac_admin", "syslog", "wake_alarm", "block_suspend", "audit_read", "perfmon", "bpf",
    "checkpoint_restore",
)  # fmt: skip
NOT_FOR_WORKERS = frozenset({
    "sys_module", "sys_rawio", "sys_boot", "sys_time", "sys_tty_config", "sys_pacct", "syslog", "mac_override",
    "mac_admin", "wake_alarm", "block_suspend", "audit_control", "audit_read", "lease", "linux_immutable",
    "ipc_owner", "net_broadcast", "checkpoint_restore",
})  # fmt: skip
"""Sandboxes need mounts, namespaces, networks, device rules and file ownership, but none of these."""

_NUMBERS: Mapping[str, tuple[int, int]] = {  # on x86_64, on aarch64
    "acct": (163, 89),
    "add_key": (248, 217),
    "adjtimex": (159, 171),
    "bpf": (321, 280),
    "chroot": (161, 51),
    "clock_adjtime": (305, 266),
    "clock_settime": (227, 112),
    "delete_module": (176, 106),
    "finit_module": (313, 273),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "init_module": (175, 105),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "kcmp": (312, 272),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "perf_event_open": (298, 241),
    "pivot_root": (155, 41),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "quotactl": (179, 60),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "sethostname": (170, 161),
    "setns": (308, 268),
    "settimeofday": (164, 170),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
}
_CLONE = (56, 220)
_CLONE3 = (435, 435)
_NEW_NAMESPACES = 0x7E020080  # CLONE_NEW{NS,CGROUP,UTS,IPC,USER,PID,NET} and NEWTIME
_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}

_LOAD, _JUMP_EQUAL, _JUMP_ANY, _JUMP_AT_LEAST, _RETURN = 0x20, 0x15, 0x45, 0x35, 0x06
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000
_OTHER_ABI = 0x40000000  # x32 calls have other numbers


@dataclass(frozen=True, slots=True)
class Dropped:
    """What a process dropped, and what it could not drop."""

    given_up: tuple[str, ...]
    kept: tuple[str, ...] = ()


def confine_api(keep: Collection[str] = (), writable: Collection[Path] = (), account: Account | None = None) -> Dropped:
    """For the process that answers requests. It writes to the ``writable`` folders only, as ``account``.

    A machine that does not know one of the means keeps the others. Only a change of the account has to succeed."""
    done: list[str] = []
    kept = [f"the capability {name}, because its home belongs to another user" for name in sorted(keep)]
    steps: tuple[tuple[str, Callable[[], None]], ...] = (
        ("capabilities", lambda: _keep_capabilities(keep, account)),
        ("new privileges", _no_new_privileges),
        ("writing outside of its folders", lambda: confine_writes(writable)),
        ("dangerous system calls", _filter_calls),
    )
    for name, step in steps:
        try:
            step()
            done.append(name)
        except OSError as fault:
            kept.append(f"{name}: {fault.strerror or fault}")
    if account is not None and os.getresuid() != (account.uid,) * 3:
        raise OSError(errno.EPERM, f"cannot become user {account.uid}")
    return Dropped(tuple(done), tuple(kept))


def become(account: Account) -> None:
    """This process is that user from now on, in no further group. It cannot go back."""
    os.setgroups([])
    os.setresgid(account.gid, account.gid, account.gid)
    os.setresuid(account.uid, account.uid, account.uid)


def confine_worker(allow_privileged: bool) -> Dropped:
    """For a process that creates sandboxes. With ``SEATRIAL_ALLOW_PRIVILEGED`` it must keep all privileges."""
    if allow_privileged:
        return Dropped((), ("capabilities: SEATRIAL_ALLOW_PRIVILEGED hands them to sandboxes",))
    try:
        _keep_capabilities(frozenset(_CAPABILITIES) - NOT_FOR_WORKERS)
    except OSError as fault:
        return Dropped((), (f"capabilities: {fault.strerror or fault}",))
    return Dropped((f"{len(NOT_FOR_WORKERS)} capabilities",))


def findings(account: str) -> list[str]:
    """What each process drops, and what more could be dropped; for `seatrial doctor`. ``account`` says who the API's
    process is."""
    lines = [
        f"API process: {account}; no capabilities, no new privileges, no mount, ptrace, bpf, module or key calls "
        "(seccomp), no writing outside of its home and temporary folders, no signals to others (Landlock)"
    ]
    lines.append(f"workers: {len(NOT_FOR_WORKERS)} capabilities that sandboxes do not need are dropped")
    if platform.machine() not in _MACHINES:
        lines.append(f"could be dropped further: there is no system call filter for {platform.machine()}")
    return lines


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _prctl(*arguments: int) -> int:
    given = [ctypes.c_ulong(argument) for argument in (*arguments, 0, 0, 0, 0)[:5]]
    result: int = _libc().prctl(*given)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def _keep_capabilities(kept: Collection[str], account: Account | None = None) -> None:
    """First removes them from the bounding set, which needs a capability itself, as a change of the account does; then
    from the process."""
    dropped = [number for number, name in enumerate(_CAPABILITIES) if name not in kept]
    for number in dropped:
        try:
            if _prctl(_PR_CAPBSET_READ, number):
                _prctl(_PR_CAPBSET_DROP, number)
        except OSError as fault:
            if fault.errno == errno.EPERM and os.geteuid() != 0:
                break  # a user without capabilities has none to drop
            if fault.errno != errno.EINVAL:  # unknown to an older kernel
                raise
    _prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    if account is not None:
        become(account)
    _set_capabilities(sum(1 << number for number in dropped))


def _set_capabilities(without: int) -> None:
    header = ctypes.create_string_buffer(struct.pack("=Ii", _CAPABILITY_VERSION, 0))
    data = ctypes.create_string_buffer(24)
    libc = _libc()
    if libc.capget(header, data) != 0:
        raise OSError(ctypes.get_errno(), "capget")
    words = struct.unpack("=6I", data.raw[:24])
    low, high = ~without & 0xFFFFFFFF, ~(without >> 32) & 0xFFFFFFFF
    kept = [word & (low if index < 3 else high) for index, word in enumerate(words)]
    ctypes.memmove(data, struct.pack("=6I", *kept), 24)
    if libc.capset(header, data) != 0:
        raise OSError(ctypes.get_errno(), "capset")


def _no_new_privileges() -> None:
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def _filter_calls() -> None:
    if platform.machine() not in _MACHINES:
        raise OSError(errno.ENOSYS, f"no filter for {platform.machine()}")
    column, architecture = _MACHINES[platform.machine()]
    program = call_filter(column, architecture)
    code = ctypes.create_string_buffer(program, len(program))
    pointer = struct.pack("@HP", len(program) // 8, ctypes.addressof(code))
    given = ctypes.create_string_buffer(pointer, len(pointer))
    _prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.addressof(given))


def call_filter(column: int, architecture: int) -> bytes:
    """A classic BPF program that refuses other architectures, the calls above, and new namespaces with EPERM."""
    refuse, unknown = _REFUSE | errno.EPERM, _REFUSE | errno.ENOSYS
    lines = [
        (_LOAD, 0, 0, 4),
        (_JUMP_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, refuse),
        (_LOAD, 0, 0, 0),
        (_JUMP_AT_LEAST, 0, 1, _OTHER_ABI),
        (_RETURN, 0, 0, refuse),
        (_JUMP_EQUAL, 0, 1, _CLONE3[column]),  # its flags are not visible to BPF; libc then falls back to clone
        (_RETURN, 0, 0, unknown),
        (_JUMP_EQUAL, 0, 4, _CLONE[column]),
        (_LOAD, 0, 0, 16),
        (_JUMP_ANY, 0, 1, _NEW_NAMESPACES),
        (_RETURN, 0, 0, refuse),
        (_RETURN, 0, 0, _ALLOW),
    ]
    for numbers in _NUMBERS.values():
        lines += [(_JUMP_EQUAL, 0, 1, numbers[column]), (_RETURN, 0, 0, refuse)]
    lines.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *line) for line in lines)
