"""What the gate adds to a model call, and what it takes to hold many streams.

Three processes: the model's service, the gate with a worker's modules loaded, and the callers. 100 trials call through
the gate; at the same moments others call the same service directly, with the same bodies. What the gate adds is the
difference of the medians, so the service's own time and a slow machine are in both.

It is measured twice. First the gate has a core of its own, and the service and the callers share the others: in use,
the service is on another machine. Then all three share all cores, and a gate that is busy waits for them, too.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.place import ROOT, Place
from benchmarks.row import Row, shown

_TRIALS = 100
_DIRECT = 20
_ANSWER_SEC, _PIECES = 2.0, 40
_MOST_ADDED_SEC = 0.003
_STREAMS = 500
_ARRIVE_SEC = 5.0
"""Streams begin within this time, and are all held until the last one has begun."""
_MOST_MB = 300
_BODY_BYTES = 80_000
"""A usual conversation after some twenty turns."""


@dataclass
class Child:
    """A process that tells where it listens, and at the end what it saw."""

    process: subprocess.Popen[str]
    told: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        self.told = self._line()

    def end(self) -> dict[str, Any]:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self._line()

    def _line(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("A process of the measurement ended early.")
        found: dict[str, Any] = json.loads(line)
        return found


async def measure(place: Place) -> list[Row]:
    return [*await _added(place), *await _held(place)]


async def _added(place: Place) -> list[Row]:
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) == 1:
        return await _added_on(place, cores, cores, "on one core with the service and the callers", _MOST_ADDED_SEC)
    try:
        os.sched_setaffinity(0, cores[1:])
        apart = await _added_on(place, cores[:1], cores[1:], "on a core of its own", _MOST_ADDED_SEC)
    finally:
        os.sched_setaffinity(0, cores)
    shared = f"on {len(cores)} cores with the service and the callers"
    return apart + await _added_on(place, cores, cores, shared, math.inf)


async def _added_on(
    place: Place, gates: Sequence[int], others: Sequence[int], where: str, most_sec: float
) -> list[Row]:
    """``gates``: the cores of the gate; ``others``: those of the service. This process has the callers."""
    trials, rounds = place.count(_TRIALS, 20), place.count(10, 3)
    with (
        _service(_ANSWER_SEC, _PIECES, cores=others) as service,
        _gate(place, service.told["port"], trials, cores=gates) as gate,
    ):
        ports: list[int] = gate.told["ports"]
        callers = [(port, number) for number, port in enumerate(ports)]
        direct = [(service.told["port"], number) for number in range(place.count(_DIRECT, 8))]
        through, beside = await asyncio.gather(
            _called(callers, rounds, _ANSWER_SEC), _called(direct, rounds, _ANSWER_SEC)
        )
        counted, seen = gate.end(), service.end()
    calls = trials * rounds
    _check(counted["calls"] == calls and not counted["failed"], f"the gate counted {counted}")
    _check(seen["calls"] == calls + len(beside), f"the service saw {seen}")
    rows = []
    for kind in ("whole", "streamed"):
        ours, theirs = (statistics.median(times[kind]) for times in (_by_kind(through), _by_kind(beside)))
        added = ours - theirs
        rows.append(
            Row(
                f"the gate adds to a call, {kind}, {trials} trials in flight, {where}, median",
                shown(max(added, 0.0)),
                f"<= {most_sec * 1000:g} ms" if math.isfinite(most_sec) else "",
                added <= most_sec,
                f"direct calls of {shown(theirs)} to the same service",
            )
        )
    cpu = counted["cpu_sec"] / calls
    rows.append(
        Row(f"processor time of the gate for a call of {_BODY_BYTES // 1000} kB, {where}", shown(cpu), "", True)
    )
    return rows


async def _held(place: Place) -> list[Row]:
    streams = place.count(_STREAMS, 50)
    with _service(0.5, _PIECES, held=streams) as service, _gate(place, service.told["port"], streams) as gate:
        idle_mb = gate.told["memory_mb"]
        callers = [(port, 2 * number + 1) for number, port in enumerate(gate.told["ports"])]
        times = await _called(callers, 1, _ARRIVE_SEC)
        counted, seen = gate.end(), service.end()
    whole = len(times) == streams == counted["calls"] == seen["calls"] and not counted["failed"]
    tokens = all(counted[name] == seen[name] for name in ("input_tokens", "output_tokens"))
    what = f"{streams} streams at once in one worker's gate"
    return [
        Row(
            f"{what}: memory of the process",
            f"{counted['memory_mb']:.0f} MB at most",
            f"< {_MOST_MB} MB",
            counted["memory_mb"] < _MOST_MB,
            f"before the streams {idle_mb:.0f} MB",
        ),
        Row(
            f"{what}: held at the same moment, complete, and tokens counted as by the service",
            f"{seen['most_at_once']}, {counted['calls']}, {'equal' if tokens else 'different'}",
            "all",
            whole and tokens and seen["most_at_once"] == streams,
        ),
    ]


def _by_kind(calls: list[tuple[str, float]]) -> dict[str, list[float]]:
    return {kind: [seconds for found, seconds in calls if found == kind] for kind in ("whole", "streamed")}


def _check(holds: bool, words: str) -> None:
    if not holds:
        raise RuntimeError(f"Not every call was counted: {words}.")


async def _called(callers: list[tuple[int, int]], rounds: int, spread_sec: float) -> list[tuple[str, float]]:
    """The seconds of each call. Callers begin at different moments, as trials do. Odd ones stream."""

    async def one(port: int, number: int) -> list[tuple[str, float]]:
        await asyncio.sleep(spread_sec * (number * 0.618 % 1))
        streams = number % 2 == 1
        body = _body(streams, number)
        return [("streamed" if streams else "whole", await call(port, body)) for _ in range(rounds)]

    found = await asyncio.gather(*(one(port, number) for port, number in callers))
    return [each for calls in found for each in calls]


def _body(streams: bool, number: int) -> bytes:
    turn = "The command printed:\nsrc/main.py:120: in solve\n    return [row for row in table]\n" * 12
    messages = [
        {"role": "user" if turns % 2 else "assistant", "content": f"{number}.{turns} {turn}"}
        for turns in range(_BODY_BYTES // len(turn))
    ]
    return json.dumps({"model": "m", "messages": messages, "max_tokens": 4000, "stream": streams}).encode()


async def call(port: int, body: bytes) -> float:
    """Seconds from the connection to the end of the answer, as clients know it: by its length or its last chunk."""
    began = time.perf_counter()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        head = (
            f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        writer.write(head.encode() + body)
        told = await reader.readuntil(b"\r\n\r\n")
        if not told.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(f"A call failed: {told[:300]!r}")
        length = re.search(rb"content-length: *(\d+)", told, re.IGNORECASE)
        await (reader.readexactly(int(length[1])) if length else _last_chunk(reader))
        return time.perf_counter() - began
    finally:
        writer.close()


async def _last_chunk(reader: asyncio.StreamReader) -> None:
    while size := int(await reader.readuntil(b"\r\n"), 16):
        await reader.readexactly(size + 2)
    await reader.readexactly(2)


@contextmanager
def _service(seconds: float, pieces: int, held: int = 0, *, cores: Sequence[int] = ()) -> Iterator[Child]:
    with _process("benchmarks.model_service", str(seconds), str(pieces), str(held), cores=cores) as child:
        yield child


@contextmanager
def _gate(place: Place, port: int, doors: int, *, cores: Sequence[int] = ()) -> Iterator[Child]:
    home: Path = place.folder("gate")
    address = f"http://127.0.0.1:{port}/v1"
    with _process("benchmarks.gate_process", str(home), address, str(doors), cores=cores) as child:
        yield child


@contextmanager
def _process(*arguments: str, cores: Sequence[int]) -> Iterator[Child]:
    process = subprocess.Popen(
        [sys.executable, "-m", *arguments], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        os.sched_setaffinity(process.pid, cores or os.sched_getaffinity(0))  # before it has threads
        yield Child(process)
    finally:
        process.kill()
        process.wait()
