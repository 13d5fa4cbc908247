#!/bin/sh
# Prints a Python >= 3.12 that really runs. A shim on PATH may exist and still fail, so every candidate is tried.
set -u
works() { "$1" -c 'import sys, venv, ssl, sqlite3; sys.exit(sys.version_info < (3, 12))' >/dev/null 2>&1; }

candidates() {
    [ -n "${PYTHON:-}" ] && echo "$PYTHON"
    for name in python3.12 python3.13 python3.14 python3 python; do command -v "$name" 2>/dev/null; done
    for root in "${PYENV_ROOT:-}" "$HOME/.pyenv" /opt/pyenv; do
        [ -n "$root" ] && ls -d "$root"/versions/3.1[2-4].*/bin/python 2>/dev/null
    done
    command -v uv >/dev/null 2>&1 && uv python find --no-python-downloads '>=3.12' 2>/dev/null
    ls -d /usr/local/bin/python3.1[2-4] /usr/bin/python3.1[2-4] 2>/dev/null
}

for candidate in $(candidates); do
    if works "$candidate"; then
        echo "$candidate"
        exit 0
    fi
done
echo "No working Python >= 3.12 was found (looked on PATH, in pyenv and through uv)." >&2
echo "Install one, for example with 'apt-get install python3.12 python3.12-venv' or 'pyenv install 3.12'," >&2
echo "or name it: make PYTHON=/path/to/python3.12 setup" >&2
exit 1
