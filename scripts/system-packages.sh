#!/bin/sh
# Installs the Debian packages that are missing: "run" for running trials, "test" for the whole test suite, "load" for `make loaded`.
# Without root or apt it prints the one line to run and goes on; `seatrial doctor` then tells what does not work.
set -eu
wanted="buildah crun e2fsprogs debootstrap nftables iproute2 busybox-static tmux util-linux ca-certificates golang-github-containers-common"
[ "${1:-run}" = test ] && wanted="$wanted fuse-overlayfs docker.io podman catatonit postgresql redis-server git iptables procps chromium fonts-dejavu-core gcc libc6-dev slirp4netns"
[ "${1:-run}" = load ] && wanted=stress
# Debian 13's buildah starts nothing without it. Debian 12's does not need it.
grep -qE '^VERSION_ID="?1[3-9]' /etc/os-release 2>/dev/null && wanted="$wanted netavark"

command -v dpkg-query >/dev/null 2>&1 || {
    echo "Not a Debian system: please install the equivalents of: $wanted" >&2
    exit 0
}
missing=""
for package in $wanted; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing="$missing $package"
done
[ -z "$missing" ] && exit 0
if [ "$(id -u)" != 0 ]; then
    echo "Some system packages are missing. Please run:  sudo apt-get install -y$missing" >&2
    exit 0
fi
echo "Installing system packages:$missing"
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086
apt-get install -y -q --no-install-recommends $missing >/dev/null 2>&1 || {
    apt-get update -q >/dev/null
    # shellcheck disable=SC2086
    apt-get install -y -q --no-install-recommends $missing >/dev/null
}
