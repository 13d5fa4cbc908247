#!/bin/sh
# Installs gVisor's runsc for SEATRIAL_OCI_RUNTIME=runsc. The package of Debian 12 is too old, so the program alone is
# taken from the next release. Safe to run again.
set -eu
cd "$(dirname "$0")/.."
oldest=20240729

recent() {
    released=$(runsc --version 2>/dev/null | grep -o -m 1 -E '20[0-9]{6}' | head -n 1)
    [ "${released:-0}" -ge "$oldest" ]
}

[ "$(id -u)" = 0 ] || { echo "install-gvisor.sh: run me as root" >&2; exit 1; }
recent && exit 0
command -v apt-get >/dev/null || { echo "install-gvisor.sh: this machine has no apt; install runsc yourself" >&2; exit 1; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
sh scripts/fetch-next-release.sh "$scratch" runsc
install -m 755 "$scratch/usr/bin/runsc" /usr/local/bin/runsc
recent || { echo "install-gvisor.sh: $(command -v runsc) is older than $oldest" >&2; exit 1; }
runsc --version
