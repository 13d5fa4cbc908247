#!/bin/sh
# Builds the web page into the package (src/seatrial/page), where the service and the wheel find it. Quick when nothing
# changed since; users of the wheel never need it. Packages come from npm's cache where it has them.
set -eu
cd "$(dirname "$0")/.."
built=src/seatrial/page

# One at a time: `make run` and the tests may both ask for it.
if [ -z "${PAGE_BUILD_LOCK:-}" ] && command -v flock >/dev/null 2>&1; then
    PAGE_BUILD_LOCK=held exec flock web/package.json sh scripts/build-page.sh
fi

# What the page is made from: its own files, what they are built with, and the API that its types come from.
wanted=$({ cat docs/reference/openapi.json; find web -type f -not -path 'web/node_modules/*' -not -name schema.d.ts \
    | LC_ALL=C sort | while read -r file; do echo "$file"; cat "$file"; done; } | cksum)
if [ -f "$built/index.html" ] && [ "$(cat "$built/.sources" 2>/dev/null)" = "$wanted" ]; then
    exit 0
fi

# Node 20.19 or newer, by running it; else the one that comes as a wheel.
recent='const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 20 || (a === 20 && b >= 19) ? 0 : 1)'
if ! node -e "$recent" 2>/dev/null || ! npm --version >/dev/null 2>&1; then
    if [ ! -x .venv/bin/node ]; then
        echo "Installing Node.js 20.19 or newer into .venv, to build the page with ..."
        .venv/bin/uv pip install --quiet --python .venv/bin/python --require-hashes -r scripts/build-tools.lock
    fi
    PATH="$PWD/.venv/bin:$PATH"
    export PATH
fi

echo "Building the page ..."
cd web
lock=$(cksum < package-lock.json)
if [ "$(cat node_modules/.lock-sum 2>/dev/null)" != "$lock" ]; then
    # Not `npm ci`: it refuses a lock that does not name every platform's binaries.
    npm install --no-save --no-audit --no-fund --prefer-offline --loglevel=error >/dev/null
    echo "$lock" > node_modules/.lock-sum
fi
npm run --silent types >/dev/null
npm run --silent build >/dev/null
cd ..
echo "$wanted" > "$built/.sources"
echo "The page is built: $built"
