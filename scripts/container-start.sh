#!/bin/sh
# First program of the worker's image. With cgroup version 2, a container starts in the root of its own hierarchy, and the
# kernel limits no children of a group that has processes itself: so the processes move aside, and sandboxes get limits.
# Nothing happens on version 1, on a machine's real root (it has no cgroup.type), and where the hierarchy is read-only.
set -eu
root=${SEATRIAL_CGROUP_ROOT:-/sys/fs/cgroup}
if [ -f "$root/cgroup.type" ] && mkdir -p "$root/start" 2>/dev/null; then
    # Processes may end while the list is read.
    while read -r process; do
        { echo "$process" > "$root/start/cgroup.procs"; } 2>/dev/null || true
    done < "$root/cgroup.procs"
fi
exec "$@"
