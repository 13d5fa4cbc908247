"""Which sockets a sandbox's processes may make: a list of families, as rules of a seccomp filter.

A family is a way into kernel code that no namespace divides (AF_VSOCK reaches the hypervisor, AF_ALG the kernel's
ciphers), so what is not on the list is refused. AF_PACKET takes CAP_NET_RAW and stays within the sandbox's own line.

The kernel reads 32 bits of each argument, so the rules compare 32 bits: ``socket(1 << 32 | AF_VSOCK)`` is AF_VSOCK.

``socketcall`` of 32-bit programs passes its arguments by address, where a filter cannot see them, so it is not there.
Such programs get sockets if their C library makes the direct call (musl does, glibc if built for kernel 4.3 or newer).
That rule has to come first: for 32-bit programs libseccomp makes a rule about ``socketcall`` of each one about
``socket``, without its conditions, and only a rule without any conditions that was there before wins over those.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Sequence
from typing import Any

_FAMILIES = (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6)
_PROTOCOLS = {"route": 0, "sock_diag": 4, "kobject_uevent": 15, "generic": 16}
_AUDIT = 9
_KERNEL_FAMILIES = 64
"""More than any kernel has; beyond, the kernel itself refuses."""
_KERNEL_PROTOCOLS = 32
_LOW_HALF = 0xFFFFFFFF

NO_SOCKETCALL: dict[str, Any] = {"names": ["socketcall"], "action": "SCMP_ACT_ERRNO", "errnoRet": errno.EAFNOSUPPORT}
"""The first rule of every filter. Its error is no filter's default: runtimes leave out rules that repeat that."""
SOCKET_CALLS = frozenset({"socket", "socketpair", "socketcall"})


def allowed_sockets(capabilities: Sequence[str]) -> list[dict[str, Any]]:
    """Rules that let the listed kinds through."""
    kinds = [[_equals(0, family)] for family in _families(capabilities)]
    kinds += [[_equals(0, socket.AF_NETLINK), _equals(2, number)] for number in _protocols(capabilities)]
    rules = [{"names": ["socket"], "action": "SCMP_ACT_ALLOW", "args": kind} for kind in kinds]
    return [*rules, {"names": ["socketpair"], "action": "SCMP_ACT_ALLOW", "args": [_equals(0, socket.AF_UNIX)]}]


def refused_sockets(capabilities: Sequence[str]) -> list[dict[str, Any]]:
    """Rules that refuse all others as a kernel does that was built without them: programs know what to do then."""
    open_families = {*_families(capabilities), socket.AF_NETLINK}
    open_protocols = set(_protocols(capabilities))
    families = [number for number in range(_KERNEL_FAMILIES) if number not in open_families]
    protocols = [number for number in range(_KERNEL_PROTOCOLS) if number not in open_protocols]
    pairs = [number for number in range(_KERNEL_FAMILIES) if number != socket.AF_UNIX]
    return [
        *(_refuse("socket", errno.EAFNOSUPPORT, _equals(0, number)) for number in families),
        *(
            _refuse("socket", errno.EPROTONOSUPPORT, _equals(0, socket.AF_NETLINK), _equals(2, number))
            for number in protocols
        ),
        *(_refuse("socketpair", errno.EAFNOSUPPORT, _equals(0, number)) for number in pairs),
    ]


def _families(capabilities: Sequence[str]) -> list[int]:
    return [*_FAMILIES, *([socket.AF_PACKET] if "CAP_NET_RAW" in capabilities else [])]


def _protocols(capabilities: Sequence[str]) -> list[int]:
    return [*_PROTOCOLS.values(), *([_AUDIT] if "CAP_AUDIT_WRITE" in capabilities else [])]


def _equals(index: int, value: int) -> dict[str, Any]:
    return {"index": index, "value": _LOW_HALF, "valueTwo": int(value), "op": "SCMP_CMP_MASKED_EQ"}


def _refuse(name: str, code: int, *conditions: dict[str, Any]) -> dict[str, Any]:
    return {"names": [name], "action": "SCMP_ACT_ERRNO", "errnoRet": int(code), "args": list(conditions)}
