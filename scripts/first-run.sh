#!/bin/sh
# What `make run` shows: the samples through the oracle, one conversation of a scripted model with a real terminal, and the
# service. In a terminal the service stays in the foreground; elsewhere it is started, asked whether it is ready, and stopped.
set -eu
cd "$(dirname "$0")/.."
seatrial=.venv/bin/seatrial
page_log=$(mktemp)
sh scripts/build-page.sh >"$page_log" 2>&1 &  # beside the samples; nobody looks at the page before the service starts
building=$!
echo "== This machine"
$seatrial doctor | tail -n 1
echo "   (The first run also makes a Debian base image from the package mirror and builds the samples' images: about a minute.)"
echo "== The samples, each solved by its own solution (agent: oracle)"
$seatrial run samples --name "first run: samples with the oracle"
echo "== One conversation: terminus-2 with a scripted model solves samples/read-the-screen"
$seatrial run samples/read-the-screen -a terminus-2 -m scripted/solve-read-the-screen --name "first run: scripted terminus-2"
echo "Look closer with: $seatrial job list, $seatrial job show 1, $seatrial trial show 1, $seatrial trial logs 1"
echo "== The service"
if ! wait "$building"; then
    echo "   The page could not be built (the API works without it):"
    tail -n 3 "$page_log"
fi
rm -f "$page_log"
if [ -t 0 ] && [ -t 1 ]; then
    exec $seatrial up --next-port
fi

out=$(mktemp)
$seatrial up --next-port >"$out" &
service=$!
trap 'kill "$service" 2>/dev/null || true; rm -f "$out"' EXIT
.venv/bin/python - "$out" <<'PYTHON'
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

out, deadline = Path(sys.argv[1]), time.monotonic() + 90
address = ""
while time.monotonic() < deadline:
    address = address or next((word for word in out.read_text().split() if word.startswith("http://")), "")
    try:
        if address and urllib.request.urlopen(f"{address}/ready", timeout=10).status == 200:
            print(out.read_text(), end="")
            print(f"{address}/ready answers: ready. Not in a terminal, so it is stopped again; start it with: seatrial up")
            sys.exit(0)
    except OSError:
        pass
    time.sleep(0.2)
sys.exit("The service was not ready within 90 s.")
PYTHON
kill "$service"
wait "$service"
