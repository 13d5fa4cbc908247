"""System calls of the warden's processes, and so of the verifier's: everything but what containers have no use for.

The agent runs under the engine's own profile, which this cannot be: a warden mounts and enters namespaces. These calls
take a capability that the verifier gives up before it starts, so leaving them open to it gives it nothing.
"""

from __future__ import annotations

import json
from typing import Any

_NEW_USER_NAMESPACE = 0x10000000
_ENOSYS = 38
_REFUSED = (  # noqa: SIM905
    # the kernel itself
    "bpf create_module delete_module finit_module init_module kexec_file_load kexec_load lookup_dcookie perf_event_open"
    " query_module reboot swapoff swapon syslog userfaultfd io_uring_enter io_uring_register io_uring_setup"
    # the clock and the hardware
    " adjtimex clock_adjtime clock_settime ioperm iopl settimeofday stime vm86 vm86old"
    # keys, accounting, quotas: not divided by namespaces
    " acct add_key keyctl request_key quotactl quotactl_fd"
    # files by handle, and mounts in the way that the warden does not need
    " name_to_handle_at open_by_handle_at fsconfig fsmount fsopen fspick mount_setattr move_mount open_tree"
    # relics
    " _sysctl nfsservctl sysfs uselib ustat"
    # memory of others
    " kcmp migrate_pages move_pages pidfd_getfd process_madvise"
).split()


def warden_profile() -> str:
    """As the engine takes it."""
    rules: list[dict[str, Any]] = [
        {"names": list(_REFUSED), "action": "SCMP_ACT_ERRNO"},
        {"names": ["unshare", "clone"], "action": "SCMP_ACT_ERRNO", "args": [_flag(_NEW_USER_NAMESPACE)]},
        # Its flags are out of a filter's sight. Told that it is missing, the C library takes the older call.
        {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": _ENOSYS},
    ]
    return json.dumps({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": rules})


def _flag(value: int) -> dict[str, Any]:
    return {"index": 0, "value": value, "valueTwo": value, "op": "SCMP_CMP_MASKED_EQ"}
