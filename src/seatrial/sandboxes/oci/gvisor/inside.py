"""Scripts that find and kill processes of a gVisor sandbox. busybox runs them in the grading container.

The machine has no process for a process of the sandbox, so nothing can be signalled from outside. The grading container
sees all of them, and no agent reaches it. Only the shell's built-in commands are used, because the agent may have taken
every process that the sandbox is allowed.
"""

from __future__ import annotations

from seatrial.sandboxes.oci.gvisor.spec import BUSYBOX

NOTHING = [BUSYBOX, "true"]
"""Only tells whether a program can run."""

# A process may have any characters in its name, so what follows its last bracket is taken, over all lines.
_STAT = """
stat() {
    text=
    while read -r line; do text="$text $line"; done < /proc/$1/stat
    set -- ${text##*)}
    state=$1 parent=$2 session=$4
} 2> /dev/null
is_of() {
    while read -r line; do case $line in *:pids:/$2) return 0 ;; esac; done < /proc/$1/cgroup
    return 1
} 2> /dev/null
others() {
    found=
    for place in /proc/[0-9]*; do
        process=${place#/proc/}
        [ $process != $$ ] && [ $process != $first ] && is_of $process $1 && stat $process || continue
        case $state in [RSDTt]) found="$found $process" ;; esac
    done
}
first_of() {
    first=0
    for place in /proc/[0-9]*; do
        process=${place#/proc/}
        is_of $process $1 && { [ $first = 0 ] || [ $process -lt $first ]; } && first=$process
    done
}
"""
_KILL_FAMILY = """
known=" $1 " quiet=0 round=0
kill -STOP $1
while [ $quiet -lt 2 ] && [ $round -lt 200 ]; do
    new=
    for place in /proc/[0-9]*; do
        process=${place#/proc/}
        case $known in *" $process "*) continue ;; esac
        stat $process
        case $state in [RSDTt]) ;; *) continue ;; esac
        case "$session $known" in "$1 "* | *" $parent "*) new="$new $process" ;; esac
    done
    for process in $new; do kill -STOP $process; known="$known$process "; done
    if [ "$new" ]; then quiet=0; else quiet=$((quiet + 1)); fi
    round=$((round + 1))
done 2> /dev/null
kill -KILL $known 2> /dev/null
exit 0
"""
_KILL_ALL = """
first_of $1
round=0
while [ $round -lt 200 ]; do
    others $1
    [ "$found" ] || exit 0
    kill -KILL $found 2> /dev/null
    round=$((round + 1))
done
exit 1
"""
_NONE_LEFT = """
first_of $1
others $1
[ ! "$found" ]
"""


def kill_family(leader: int) -> list[str]:
    """Kills a command by its first process: its session and all of its descendants, which are stopped before."""
    return _script(_KILL_FAMILY, str(leader))


def kill_all(container: str) -> list[str]:
    """Kills all processes of a container but its first, and repeats that while any are left."""
    return _script(_KILL_ALL, container)


def none_left(container: str) -> list[str]:
    """Succeeds if a container has no living process besides its first."""
    return _script(_NONE_LEFT, container)


def _script(text: str, argument: str) -> list[str]:
    return [BUSYBOX, "sh", "-c", _STAT + text, "sh", argument]
