"""An agent writes without end into what people watch: a gigabyte takes no more memory than a line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from seatrial.engine.live.tail import PIECE
from tests.unit.engine.live.test_tail import Try

GIGABYTE = 1 << 30
_ENOUGH = 1 << 20
_MEASURED = """
import asyncio, os, resource, sys
from pathlib import Path
from seatrial.adapters.blobs_files import FileBlobs
from seatrial.domain.result import StoredFile
from seatrial.engine.trials.found_files import SaveLimits
from seatrial.engine.trials.save_files import FileSaver
from seatrial.engine.trials.trial_files import KeptFiles, TryFiles
from seatrial.testing.memory_store import MemoryStore
from tests.unit.engine.live.test_tail import Try

def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

async def main(place, size):
    (place / "try").mkdir()
    a_try = Try(place / "try", "sk-canary-0123456789")
    for name in ("agent/agent.log", "agent/screen.cast", "verifier/test-stdout.txt"):
        a_try.write(name, "begin without an end")
        os.truncate(place / "try" / name, 20 + size)  # one line of zeros
    before = peak()
    for last in (False, False, True):
        a_try.told(last)
    blobs = FileBlobs.in_directory(place / "blobs")
    saver = FileSaver(blobs, SaveLimits(bytes=1 << 40))
    kept = await saver.save("trials/1/1", place / "try", ["sk-canary-0123456789"])
    files = KeptFiles(trial_id=1, try_number=1, files=kept.files)
    longest = total = 0
    async for piece in TryFiles(MemoryStore(), blobs).stream(files, files.find("agent/agent.log"), 0, 8 << 20):
        longest, total = max(longest, len(piece)), total + len(piece)
    print(peak() - before, longest, total)

asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
"""


def grown(place: Path, size: int) -> tuple[int, int, int]:
    """Megabytes of memory for logs of this size; the longest piece that a reader got, and all of them."""
    place.mkdir()
    command = [sys.executable, "-c", _MEASURED, str(place), str(size)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[3])
    megabytes, longest, total = map(int, done.stdout.split())
    return megabytes, longest, total


def test_a_line_without_end_takes_no_memory(tmp_path: Path) -> None:
    megabytes, longest, total = grown(tmp_path / "large", GIGABYTE)
    assert megabytes < 100 and longest <= _ENOUGH and total == 8 << 20


def test_a_usual_log_is_read_whole(tmp_path: Path) -> None:
    assert grown(tmp_path / "small", 1000)[1:] == (1020, 1020)


@pytest.fixture
def a_try(tmp_path: Path) -> Try:
    return Try(tmp_path)


TEXT, LONG = "x" * 60_000, "y" * 60_000
FRAMES = {
    "a moment that is a text": [TEXT, "o", LONG],
    "a kind without end": [1.0, TEXT, LONG],
    "a list of texts": [1.0, "o", [TEXT, LONG]],
    "an object": [1.0, "o", {TEXT: LONG}],
    "four parts": [1.0, "o", TEXT, LONG],
    "numbers": [1.0, "o", list(range(20_000))],
}


@pytest.mark.parametrize("frame", FRAMES)
def test_a_frame_does_not_grow_on_its_way(a_try: Try, frame: str) -> None:
    line = json.dumps(FRAMES[frame]) + "\n"
    a_try.write("agent/screen.cast", line)
    told = [piece.text for _ in range(3) for piece in a_try.pieces()]
    assert sum(map(len, told)) <= len(line)
    assert all(len(text) <= 2 * PIECE for text in told)


@pytest.mark.parametrize(
    "line", ["[" * 50_000 + "]" * 50_000, "{" * 60_000, '[1e999, "o", ' + '"x"' * 9000, "\x1b[2J" * 9000]
)
def test_what_is_no_frame_ends_no_live_view(a_try: Try, line: str) -> None:
    a_try.write("agent/screen.cast", line + "\n")
    a_try.write("agent/screen.cast", json.dumps([2.0, "o", "after"]) + "\n")
    assert '"after"' in "".join(a_try.told() for _ in range(3))


def test_a_long_frame_of_an_honest_recording_arrives(a_try: Try) -> None:
    a_try.write("agent/screen.cast", json.dumps([1.0, "o", TEXT]) + "\n")
    events = [json.loads(line) for line in a_try.told().splitlines()]
    assert "".join(data for _, _, data in events) == TEXT and {kind for _, kind, _ in events} == {"o"}
