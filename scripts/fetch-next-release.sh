#!/bin/sh
# Unpacks packages of Debian's next release into a directory, through the mirror that this machine already uses.
# apt checks the signature of the release and the checksums of the packages. Nothing is installed.
#
#   scripts/fetch-next-release.sh DIRECTORY PACKAGE...
set -eu
next_release=trixie
target=$1
shift

mirror() {
    # The first Debian mirror of this machine, whichever of the two formats its sources are in.
    {
        cat /etc/apt/sources.list.d/*.sources 2>/dev/null | awk '/^URIs:/ { print $2 }'
        cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null |
            awk '$1 == "deb" { for (i = 2; i <= NF; i++) if ($i ~ /:\/\//) { print $i; break } }'
    } | grep -E '/debian/?$' | head -n 1
}

url=$(mirror)
[ -n "$url" ] || { echo "fetch-next-release.sh: found no Debian mirror in /etc/apt" >&2; exit 1; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# apt fetches as its own user, which must be able to enter the directory.
chmod 755 "$scratch"
mkdir -p "$scratch/lists/partial" "$scratch/packages" "$target"
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $url $next_release main" >"$scratch/sources.list"
apt="apt-get -q -o Dir::Etc::SourceList=$scratch/sources.list -o Dir::Etc::SourceParts=/dev/null"
apt="$apt -o Dir::State::Lists=$scratch/lists -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache="
$apt update
(cd "$scratch/packages" && $apt -o APT::Sandbox::User=root download "$@")
for package in "$scratch"/packages/*.deb; do
    dpkg-deb --extract "$package" "$target"
done
