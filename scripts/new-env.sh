#!/bin/sh
# Writes .env for compose.yaml: .env.example, with passwords and keys made for this installation. Never overwrites one.
set -eu
cd "$(dirname "$0")/.."
target=${1:-.env}
[ ! -e "$target" ] || { echo "$target exists; remove it first, if its passwords are used nowhere." >&2; exit 1; }

secret() { od -An -N24 -tx1 /dev/urandom | tr -d ' \n'; }

umask 077
{
    cat .env.example
    echo
    echo "# Made by scripts/new-env.sh. Keep SEATRIAL_SECRET_KEY: stored provider keys cannot be opened without it."
    for name in POSTGRES_PASSWORD REDIS_PASSWORD S3_SECRET_KEY SEATRIAL_SECRET_KEY; do
        echo "$name=$(secret)"
    done
} > "$target"
echo "Wrote $target. Add a provider's key to it, OPENROUTER_API_KEY for one, if agents shall call a model."
