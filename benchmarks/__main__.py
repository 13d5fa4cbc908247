"""``python -m benchmarks [--only NAME …] [--quick] [--json FILE] [--cache DIR]``: prints one table. Needs root."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from importlib import import_module
from pathlib import Path

from benchmarks.place import TRIVIAL, Place
from benchmarks.row import Row, markdown
from seatrial.settings import Settings

MEASUREMENTS = {
    "throughput": "benchmarks.throughput:measure",
    "crun-loop": "benchmarks.crun_loop:measure",
    "crowd": "benchmarks.crowd:measure_many",
    "round-trip": "benchmarks.round_trip:measure",
    "single-build": "benchmarks.single_build:measure",
    "command-line": "benchmarks.command_line:measure",
    "api-start": "benchmarks.api_start:measure",
    "api-lists": "benchmarks.api:measure_lists",
    "api-create": "benchmarks.api:measure_create",
    "api-reads": "benchmarks.api:measure_reads",
    "report": "benchmarks.report:measure",
    "settling": "benchmarks.settling:measure",
    "layer": "benchmarks.layer:measure",
    "scheduler": "benchmarks.scheduler:measure",
    "dispatch": "benchmarks.dispatch:measure",
    "dispatch-growth": "benchmarks.dispatch:measure_growth",
    "fleet": "benchmarks.fleet:measure",
    "packing": "benchmarks.packing:measure",
    "memory": "benchmarks.crowd:measure_memory",
    "live": "benchmarks.live:measure",
    "recovery": "benchmarks.recovery:measure",
    "verifiers": "benchmarks.verifiers:measure",
    "agent-cost": "benchmarks.agent_cost:measure",
    "gate": "benchmarks.gate:measure",
    "budget-race": "benchmarks.budget_race:measure",
    "kits": "benchmarks.kits:measure",
}


def main() -> int:
    options = _arguments()
    if os.geteuid() != 0:
        print("The benchmarks need root: they start sandboxes and a container engine.", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started is stopped
    os.environ.update(HARBOR_TELEMETRY="0", LITELLM_LOCAL_MODEL_COST_MAP="True")
    scratch = Path(tempfile.mkdtemp(prefix="seatrial-bench-", dir="/var/tmp"))
    place = Place(scratch, options.cache, options.quick)
    try:
        asyncio.run(_warm(place))
        rows = [row for name in options.only or MEASUREMENTS for row in _measured(name, place)]
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    print(markdown(rows))
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))
    return 0 if all(row.met for row in rows) else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="The numbers Seatrial promises, measured."
    )
    parser.add_argument("--only", nargs="+", choices=MEASUREMENTS, metavar="NAME", help=", ".join(MEASUREMENTS))
    parser.add_argument("--quick", action="store_true", help="small counts, to see that everything works")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows there too")
    parser.add_argument("--cache", type=Path, default=Settings().cache, help="where images are (SEATRIAL_CACHE)")
    return parser.parse_args()


def _measured(name: str, place: Place) -> Sequence[Row]:
    """A measurement that fails is a row that says so; the others go on."""
    print(f"{name} …", end=" ", file=sys.stderr, flush=True)
    started = time.perf_counter()
    try:
        module, _, function = MEASUREMENTS[name].partition(":")
        measure: Callable[[Place], Awaitable[list[Row]]] = getattr(import_module(module), function)
        rows: Sequence[Row] = asyncio.run(_awaited(measure, place))
    except Exception as fault:
        traceback.print_exc()
        rows = [Row(name, f"could not be measured: {type(fault).__name__}", "", False)]
    print(f"{time.perf_counter() - started:.0f} s", file=sys.stderr, flush=True)
    return rows


async def _awaited(measure: Callable[[Place], Awaitable[list[Row]]], place: Place) -> list[Row]:
    return await measure(place)


async def _warm(place: Place) -> None:
    """The trivial task's image is built before anything is measured."""
    from seatrial.sandboxes.images.assembly import shared_oci_images
    from seatrial.sandboxes.images.image import ImageRequest

    request = ImageRequest(task_name="answer-file", environment_dir=TRIVIAL / "environment")
    await shared_oci_images(place.options()).resolver.resolve(request)


if __name__ == "__main__":
    sys.exit(main())
