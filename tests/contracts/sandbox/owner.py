"""A process that starts one sandbox and then waits to be killed: ``python -m tests.contracts.sandbox.owner JSON``."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from tests.contracts.sandbox.kinds import KINDS, Place, Wish
from tests.engine import Engine


async def main() -> None:
    order = json.loads(sys.argv[1])
    engine = Engine(order["engine"]) if order["engine"] else None
    place = Place(Path(order["directory"]), Path(order["cache"]), engine, install=order["install"])
    sandbox = KINDS[order["kind"]].create(place, Wish())
    await sandbox.start(force_build=False)
    await sandbox.exec("sleep 600 >/dev/null 2>&1 &")
    if order["grading"]:
        tests = Path(order["directory"]) / "tests"
        tests.mkdir(parents=True, exist_ok=True)
        (tests / "test.sh").write_text("true\n")
        await sandbox.upload_dir(source_dir=tests, target_dir="/tests")
    print("ready", flush=True)
    await asyncio.sleep(600)


if __name__ == "__main__":
    asyncio.run(main())
