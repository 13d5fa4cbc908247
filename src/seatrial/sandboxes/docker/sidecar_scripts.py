"""The shell scripts that a sidecar runs: what ends commands, makes the verifier's view, and gives up privileges.

``sidecar`` runs them, with the static busybox of its own image and nothing of the sandbox's before ``DRESS``.
"""

from __future__ import annotations

from seatrial.sandboxes.docker.command import MARK
from seatrial.sandboxes.docker.tools import BUSYBOX
from seatrial.sandboxes.host.container_defaults import DOCKER_CAPABILITIES

SEAL = "AUDIT_WRITE"
"""The capability that the verifier has and the agent has not."""
CAPABILITIES = tuple(name.removeprefix("CAP_") for name in DOCKER_CAPABILITIES)
PREFIX = "SEATRIAL_V_"
"""Prefix of names that no program reads."""
_FORGOTTEN = 2147483647
SLEEP = f"sleep {_FORGOTTEN}"
"""What the sandbox's first process waits for, unless the task has its own."""
_MOST_LOGS = 64
"""Entries of ``/logs`` that the verifier sees: the agent may have made any number."""

# Every process of the command has it as an ancestor, or is in its session or in that of one of its processes.
KILL = rf"""
known=
quiet=0
round=0
while [ $quiet -lt 2 ] && [ $round -lt $2 ]; do
    round=$((round + 1))
    if [ -z "$known" ]; then
        # The engine's own children have no parent in here.
        for status in $({BUSYBOX} grep -l '^PPid:[^0-9]*0$' /proc/[0-9]*/status 2>/dev/null); do
            {BUSYBOX} tr '\0' '\n' < "${{status%status}}environ" 2>/dev/null | {BUSYBOX} grep -qxF "{MARK}=$1" &&
                known="$known ${{status//[!0-9]/}}"
        done
        # The engine may be about to start it.
        [ -n "$known" ] || {{ [ $round -gt 10 ] && exit 0; {BUSYBOX} usleep 50000; continue; }}
    fi
    family=$({BUSYBOX} cat /proc/[0-9]*/status 2>/dev/null | {BUSYBOX} awk -v "known=$known" '
        BEGIN {{ count = split(known, list, " "); for (i = 1; i <= count; i++) is[list[i]] = 1 }}
        /^State:/ {{ dead = ($2 == "Z" || $2 == "X") }}
        /^Pid:/ {{ pid = $2 }}
        /^PPid:/ {{ parent[pid] = $2; alive[pid] = !dead }}
        /^NSsid:/ {{ session[pid] = $NF }}
        END {{
            do {{
                more = 0
                for (p in parent) if (!(p in is) && ((parent[p] in is) || (session[p] in is))) {{ is[p] = 1; more = 1 }}
            }} while (more)
            for (p in is) if (alive[p] && p > 1) printf "%s ", p
        }}')
    if [ -n "$family" ]; then
        known="$known $family"
        kill -9 $family 2>/dev/null
        quiet=0
    else
        quiet=$((quiet + 1))
    fi
done
[ $round -lt $2 ]
"""

FEW_ROUNDS, ALL_ROUNDS = "12", "400"
"""Killed processes of a paused sandbox die only when it continues, so few rounds are enough there."""

# Everything but the first process, what it waits for (ours its sleep, a task's own what it started first), and the
# sidecar's own that only wait.
KILL_ALL = rf"""
first= sleep=
for child in $({BUSYBOX} grep -l '^PPid:[^0-9]*1$' /proc/[0-9]*/status | {BUSYBOX} tr -dc '0-9\n' |
    {BUSYBOX} sort -n); do
    first=${{first:-$child}}
    case "$({BUSYBOX} tr '\0' ' ' < "/proc/$child/cmdline" 2>/dev/null)" in "{SLEEP} ") sleep=${{sleep:-$child}} ;; esac
done
kept="1 $$ ${{sleep:-$first}}"
round=0
while [ $round -lt 100 ]; do
    round=$((round + 1))
    doomed=
    for status in $({BUSYBOX} grep -L '^State:[^A-Z]*[ZX]' /proc/[0-9]*/status 2>/dev/null); do
        process=${{status//[!0-9]/}}
        case " $kept " in *" $process "*) continue ;; esac
        case "$({BUSYBOX} tr '\0' ' ' < "/proc/$process/cmdline" 2>/dev/null)" in
            *"busybox sleep {_FORGOTTEN} ") continue ;;
        esac
        [ -d "/proc/$process" ] && doomed="$doomed $process"
    done
    [ -n "$doomed" ] || exit 0
    kill -9 $doomed 2>/dev/null
done
exit 1
"""

# Runs in the copied mount namespace, with nothing of the sandbox's files but as mount points and as sources of binds.
PREPARE = f"""
set -e
tool=/proc/self/fd/8{BUSYBOX}
cd /logs
$tool mount -t tmpfs -o mode=755,nosuid,nodev tests /tests
$tool mount -t tmpfs -o mode=755,nosuid,nodev logs /logs
bound=0
for entry in * .[!.]*; do
    [ "$entry" != verifier ] && [ -e "./$entry" ] && [ ! -L "./$entry" ] && [ $bound -lt {_MOST_LOGS} ] || continue
    bound=$((bound + 1))
    if [ -d "./$entry" ]; then $tool mkdir "/logs/$entry"; else : > "/logs/$entry"; fi
    $tool mount -o bind "./$entry" "/logs/$entry" || continue
    # The agent may have put a link there in between, which the mount followed.
    [ "$($tool stat -c %d:%i "./$entry")" = "$($tool stat -c %d:%i "/logs/$entry")" ] || $tool umount -l "/logs/$entry"
done
$tool mkdir -m 777 /logs/verifier
cd /
# A shell gives the first of what it puts into the background /dev/null to read, which the agent may have removed.
: | $tool sleep {_FORGOTTEN} <&- >&- 2>&- &
echo $!
"""

ENTER = f"""
exec 8< /
export PATH=/proc/self/fd/8/bin
exec {BUSYBOX} nsenter -t 1 -m -u -- /proc/self/fd/8{BUSYBOX} unshare -m -- /proc/self/fd/8{BUSYBOX} sh -c "$1"
"""

WAIT = [BUSYBOX, "sleep", str(_FORGOTTEN)]
# A sidecar that is made for grading prepares it as it starts, which saves the engine a command.
PREPARE_AND_WAIT = [
    *(BUSYBOX, "sh", "-c"),
    f'{BUSYBOX} sh -c "$1" sh "$2" || echo failed; exec {BUSYBOX} sleep {_FORGOTTEN} <&- >&- 2>&-',
    *("sh", ENTER, PREPARE),
]

# From the sidecar's privileges to the verifier's. What is needed to enter the sandbox's namespaces is kept in the
# inheritable set, which survives the loss of the bounding set, and given up by a static program after that.
ENTERS = ("sys_admin", "sys_chroot", "sys_ptrace")
DROP = f"""
exec 8< /
here=/proc/self/fd/8 holder=$1 user=$2 group=$3 groups=$4 ambient=$5
shift 5
drop="/lib/ld.so --library-path /lib /bin/setpriv"
exec $drop --inh-caps=-all,{",".join(f"+{name}" for name in ENTERS)},+{SEAL.lower()} -- \\
    $drop --reuid="$user" --regid="$group" $groups --no-new-privs --ambient-caps=-all$ambient \\
    --bounding-set=-all,{",".join(f"+{name.lower()}" for name in CAPABILITIES)} -- \\
    {BUSYBOX} nsenter -t "$holder" -m -u -- \\
    $here{BUSYBOX} setpriv --inh-caps {",".join(f"-{name}" for name in ENTERS)} -- "$@"
"""

# The verifier's own environment is put on last, by the sandbox's own shell: no privileged program may be led by it.
DRESS = f"""exec 8<&-
for name in $SEATRIAL_NAMES; do value={PREFIX}$name; export "$name=${{!value}}"; unset "$value"; done
unset SEATRIAL_NAMES name value
cd -- "$1" || exit 126
exec bash -c "$2"
"""
