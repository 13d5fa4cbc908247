#!/bin/sh
# Installs a container engine for the `docker` sandbox and its tests: Debian's docker.io, and the compose and
# buildx plugins that only stock Harbor needs. Debian 12 has no plugin packages, so they are taken from the next
# release through the same mirror this machine already uses. Nothing is started. Safe to run again.
#
#   scripts/install-engine.sh [--without-plugins]
set -eu

plugins=/usr/local/lib/docker/cli-plugins
next_release=trixie

[ "$(id -u)" = 0 ] || { echo "install-engine.sh: run me as root" >&2; exit 1; }
command -v apt-get >/dev/null || { echo "install-engine.sh: this machine has no apt; install docker yourself" >&2; exit 1; }

mirror() {
    # The first Debian mirror of this machine, whichever of the two formats its sources are in.
    {
        cat /etc/apt/sources.list.d/*.sources 2>/dev/null | awk '/^URIs:/ { print $2 }'
        cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null |
            awk '$1 == "deb" { for (i = 2; i <= NF; i++) if ($i ~ /:\/\//) { print $i; break } }'
    } | grep -E '/debian/?$' | head -n 1
}

if ! command -v dockerd >/dev/null; then
    # A package's own start-up is not wanted: tests start an engine of their own, operators start theirs.
    DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -y -q --no-install-recommends docker.io busybox-static
fi
[ "${1:-}" = --without-plugins ] && exit 0

if ! docker compose version >/dev/null 2>&1 || ! docker buildx version >/dev/null 2>&1; then
    url=$(mirror)
    [ -n "$url" ] || { echo "install-engine.sh: found no Debian mirror in /etc/apt" >&2; exit 1; }
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    # apt fetches as its own user, which must be able to enter the directory.
    chmod 755 "$scratch"
    mkdir -p "$scratch/lists/partial" "$scratch/packages" "$scratch/unpacked" "$plugins"
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $url $next_release main" >"$scratch/sources.list"
    apt="apt-get -q -o Dir::Etc::SourceList=$scratch/sources.list -o Dir::Etc::SourceParts=/dev/null"
    apt="$apt -o Dir::State::Lists=$scratch/lists -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache="
    $apt update
    (cd "$scratch/packages" && $apt -o APT::Sandbox::User=root download docker-compose docker-buildx)
    for package in "$scratch"/packages/*.deb; do
        dpkg-deb --extract "$package" "$scratch/unpacked"
    done
    find "$scratch/unpacked" -type f \( -name docker-compose -o -name docker-buildx \) -perm -u+x |
        while read -r plugin; do install -m 755 "$plugin" "$plugins/$(basename "$plugin")"; done
fi
docker compose version
docker buildx version
