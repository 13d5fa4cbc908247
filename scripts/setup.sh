#!/bin/sh
# Makes .venv with everything locked, and the `seatrial` command in it. Quick when nothing changed.
set -eu
cd "$(dirname "$0")/.."
uv_version=0.13.7
stamp=.venv/.seatrial-setup
wanted=$(cat requirements.lock pyproject.toml scripts/setup.sh | cksum)

sh scripts/system-packages.sh "${1:-run}"
[ "${1:-run}" = test ] && [ "$(id -u)" = 0 ] && sh scripts/install-engine.sh && sh scripts/install-gvisor.sh
if [ -x .venv/bin/seatrial ] && [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then
    exit 0
fi
python=$(sh scripts/find-python.sh)
echo "Setting up .venv with $("$python" --version) ..."
[ -x .venv/bin/python ] && .venv/bin/python -c 'import sys; sys.exit(sys.version_info < (3, 12))' 2>/dev/null ||
    "$python" -m venv --clear .venv
[ -x .venv/bin/uv ] || .venv/bin/python -m pip install --quiet --disable-pip-version-check "uv==$uv_version"
.venv/bin/uv pip install --quiet --compile-bytecode --python .venv/bin/python --require-hashes -r requirements.lock
.venv/bin/uv pip install --quiet --python .venv/bin/python --no-deps --no-build-isolation -e .
echo "$wanted" > "$stamp"
echo "Ready: .venv/bin/seatrial"
