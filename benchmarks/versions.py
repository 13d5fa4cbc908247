"""``python -m benchmarks.versions FOLDER``: this checkout against another one, such as the version before a change.

Both run the same measurements in turn, several rounds, and the medians are compared: a machine that is slow for a
minute is slow for both. The other checkout needs a ``.venv`` of its own (``sh scripts/setup.sh test``).
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.place import ROOT
from benchmarks.row import Row, markdown

_DEFAULT = ("crun-loop", "round-trip", "layer", "memory")
_TOLERANCE = 1.15
"""What two runs of one version differ by on a quiet machine."""


def main() -> int:
    options = _arguments()
    found: dict[Path, dict[str, list[str]]] = {ROOT: {}, options.folder.resolve(): {}}
    for number in range(options.rounds):
        for folder, measured in found.items():
            print(f"round {number + 1} of {options.rounds}: {folder}", file=sys.stderr, flush=True)
            for what, value in _run(folder, options.only, options.quick).items():
                measured.setdefault(what, []).append(value)
    here, there = found.values()
    rows = [_row(what, here[what], there[what]) for what in here if what in there]
    print(markdown(rows))
    return 0 if all(row.met for row in rows) else 1


def _run(folder: Path, only: list[str], quick: bool) -> dict[str, str]:
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        command = [".venv/bin/python", "-m", "benchmarks", "--only", *only, "--json", file.name]
        done = subprocess.run(command + ["--quick"] * quick, cwd=folder, capture_output=True, text=True, check=False)
        rows = json.loads(file.read() or "null")
    if rows is None:
        raise SystemExit(f"The benchmarks of {folder} did not run:\n{done.stderr[-2000:]}")
    return {row["what"]: row["measured"] for row in rows}


def _row(what: str, here: list[str], there: list[str]) -> Row:
    ours, theirs = (statistics.median(map(_number, values)) for values in (here, there))
    is_rate = here[0].endswith("/s")
    ratio = theirs / ours if is_rate else ours / theirs
    unit = here[0].lstrip("0123456789. ") if len({value.lstrip("0123456789. ") for value in here}) == 1 else ""
    return Row(what, f"{ours:.4g} {unit}", f"<= {_TOLERANCE:g} ×", ratio <= _TOLERANCE, f"{theirs:.4g}", ratio)


def _number(measured: str) -> float:
    """``0.35 s`` and ``350 ms`` are the same number."""
    match = re.match(r"([\d.]+)\s*(s\b)?", measured)
    if match is None:
        raise SystemExit(f"{measured!r} does not begin with a number, so it cannot be compared.")
    return float(match[1]) * (1000 if match[2] else 1)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.versions", description=__doc__)
    parser.add_argument("folder", type=Path, help="the other checkout")
    parser.add_argument("--only", nargs="+", default=list(_DEFAULT), metavar="NAME", help="see python -m benchmarks")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--quick", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
