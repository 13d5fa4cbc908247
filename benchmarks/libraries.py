"""Our own wire formats and caches beside the libraries that offer the same: what importing and using each costs.

Not part of ``make bench``: the libraries are no dependencies. Run it with them for the moment::

    uv run --with dnspython,pyroute2,aiodocker,cachetools,httpx-sse python -m benchmarks.libraries
"""

from __future__ import annotations

import subprocess
import sys
import timeit
from collections.abc import Callable
from ipaddress import IPv4Address

_IMPORTS = {
    "dns": ("seatrial.sandboxes.network.dns", "dns.message"),
    "netlink": ("seatrial.sandboxes.network.netlink", "pyroute2"),
    "engine client": ("seatrial.sandboxes.docker.client", "aiodocker"),
    "least recently used": ("seatrial.engine.recent", "cachetools"),
    "server-sent events": ("seatrial.client.messages", "httpx_sse"),
    "toml": ("seatrial.adapters.terminalbench1.toml_text", "tomlkit"),
}


def main() -> None:
    for what, (ours, theirs) in _IMPORTS.items():
        print(f"import, {what}: ours {_import_ms(ours):.0f} ms, {theirs} {_import_ms(theirs):.0f} ms")
    for what, ours, theirs in (_questions(), _answers(), _cache()):
        mine, other = _microseconds(ours), _microseconds(theirs)
        print(f"{what}: ours {mine:.2f} us, the library {other:.2f} us, {other / mine:.1f} x")


def _import_ms(module: str) -> float:
    """On top of an interpreter that has asyncio loaded, as every process of ours has."""
    program = f"import asyncio, time; began = time.perf_counter(); import {module}; print(time.perf_counter() - began)"
    took = [subprocess.run([sys.executable, "-c", program], capture_output=True, check=True) for _ in range(5)]
    return min(float(run.stdout) for run in took) * 1000


def _microseconds(work: Callable[[], object]) -> float:
    return min(timeit.repeat(work, number=2000, repeat=5)) / 2000 * 1e6


def _questions() -> tuple[str, Callable[[], object], Callable[[], object]]:
    import dns.message

    from seatrial.sandboxes.network.dns import read_question

    wire = dns.message.make_query("a.package.example.org", "A").to_wire()
    return "read a question", lambda: read_question(wire), lambda: dns.message.from_wire(wire)


def _answers() -> tuple[str, Callable[[], object], Callable[[], object]]:
    import dns.message
    import dns.rrset

    from seatrial.sandboxes.network.dns import Address, answer, read_question

    query = dns.message.make_query("a.package.example.org", "A")
    question = read_question(query.to_wire())
    addresses = [Address(IPv4Address("192.0.2.1"), 60), Address(IPv4Address("192.0.2.2"), 60)]

    def theirs() -> bytes:
        made = dns.message.make_response(query)
        made.answer.append(dns.rrset.from_text("a.package.example.org.", 60, "IN", "A", "192.0.2.1", "192.0.2.2"))
        return made.to_wire()

    return "write an answer", lambda: answer(question, addresses=addresses), theirs


def _cache() -> tuple[str, Callable[[], object], Callable[[], object]]:
    from cachetools import LRUCache

    from seatrial.engine.recent import RecentlyUsed

    ours: RecentlyUsed[int] = RecentlyUsed(1000)
    theirs: LRUCache[int, int] = LRUCache(1000)
    for number in range(1000):
        ours.put(number, number)
        theirs[number] = number
    return "find what is remembered", lambda: ours.get(500), lambda: theirs.get(500)


if __name__ == "__main__":
    main()
