#!/bin/sh
# Installs a container engine for the `docker` sandbox and its tests: Debian's docker.io, and the compose and
# buildx plugins that only stock Harbor needs. Debian 12 has no plugin packages, so they are taken from the next
# release through the same mirror this machine already uses. Nothing is started. Safe to run again.
#
#   scripts/install-engine.sh [--without-plugins]
set -eu

plugins=/usr/local/lib/docker/cli-plugins

[ "$(id -u)" = 0 ] || { echo "install-engine.sh: run me as root" >&2; exit 1; }
command -v apt-get >/dev/null || { echo "install-engine.sh: this machine has no apt; install docker yourself" >&2; exit 1; }

if ! command -v dockerd >/dev/null; then
    # A package's own start-up is not wanted: tests start an engine of their own, operators start theirs.
    DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -y -q --no-install-recommends docker.io busybox-static
fi
[ "${1:-}" = --without-plugins ] && exit 0

if ! docker compose version >/dev/null 2>&1 || ! docker buildx version >/dev/null 2>&1; then
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    mkdir -p "$plugins"
    sh "$(dirname "$0")/fetch-next-release.sh" "$scratch/unpacked" docker-compose docker-buildx
    find "$scratch/unpacked" -type f \( -name docker-compose -o -name docker-buildx \) -perm -u+x |
        while read -r plugin; do install -m 755 "$plugin" "$plugins/$(basename "$plugin")"; done
fi
docker compose version
docker buildx version
