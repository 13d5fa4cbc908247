"""A process that starts three sandboxes and waits to be killed. Arguments: a directory, the cache, the install."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tests.host_processes import processes_with
from tests.trials import Workplace
from tests.waiting import eventually


async def main() -> None:
    directory, cache, install = sys.argv[1:]
    workplace = Workplace(Path(directory), Path(cache), install=install)
    idle, busy, graded = (workplace.sandbox() for _ in range(3))
    await asyncio.gather(*(sandbox.start(force_build=False) for sandbox in (idle, busy, graded)))
    await idle.exec(f"setsid bash -c 'exec -a {install} sleep 600' >/dev/null 2>&1 &")
    command = asyncio.create_task(busy.exec(f"exec -a {install} sleep 600"))
    tests = Path(directory) / "tests"
    tests.mkdir()
    (tests / "test.sh").write_text("true\n")
    await graded.upload_dir(tests, "/tests")
    grading = asyncio.create_task(graded.exec(f"exec -a {install} sleep 600"))
    await eventually(lambda: len(processes_with(f"{install}\x00600")) == 3, "all three commands run")
    assert not command.done() and not grading.done()
    print("ready", flush=True)
    await asyncio.sleep(600)


if __name__ == "__main__":
    asyncio.run(main())
