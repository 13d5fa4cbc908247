#!/bin/sh
# Scans deploy/ and the Dockerfile with Checkov. It has a hundred dependencies, so it gets an environment of its own.
set -eu
cd "$(dirname "$0")/.."
place=.venv-policy
wanted=$(cksum < deploy/policy.lock)
if [ "$(cat $place/.lock-sum 2>/dev/null)" != "$wanted" ]; then
    .venv/bin/uv venv --quiet --clear --python .venv/bin/python $place
    .venv/bin/uv pip install --quiet --python $place/bin/python --require-hashes -r deploy/policy.lock
    echo "$wanted" > $place/.lock-sum
fi
$place/bin/checkov --config-file deploy/checkov.yaml --directory "${1:-deploy}"
[ $# -gt 0 ] || $place/bin/checkov --config-file deploy/checkov.yaml --file Dockerfile
