"""A small world to test sandboxes' networks in: a machine, and an internet behind it, each a namespace of its own.

The test's thread *is* on the machine while the world lasts, so whatever the code under test does to "this machine" it
does to a namespace that is thrown away. Nothing leaves the computer.

    sandboxes ── machine (wan 192.0.2.2, lan 10.9.0.1) ── internet (everything else)

The internet answers on port 80 of every address of ``INTERNET``, and has a name server. It knows no way back to a
sandbox's address: what arrives there came through NAT.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
import subprocess
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from ipaddress import IPv4Address
from pathlib import Path

from seatrial.sandboxes.network import dns
from seatrial.sandboxes.network.names import MachineNames
from tests.waiting import LIMIT_SEC

WEB, OTHER_WEB, BELOW, NAMES, METADATA, PRIVATE = INTERNET = (
    "203.0.113.10",
    "203.0.113.20",
    "203.0.113.130",
    "203.0.113.53",
    "169.254.169.254",
    "10.1.2.3",
)
MACHINE_ADDRESSES = ("192.0.2.2", "10.9.0.1")
SERVICES = {"the API": 8000, "Redis": 6379, "PostgreSQL": 5432, "the container engine": 2375}

ZONE = {
    "web.example": [WEB],
    "other.example": [OTHER_WEB],
    "a.below.example": [BELOW],
    "b.c.below.example": [BELOW],
    "below.example": [OTHER_WEB],
    "inside.example": [PRIVATE],
    "metadata.example": [METADATA],
    "many.example": [f"198.51.100.{last}" for last in range(1, 101)],
}

Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class World:
    """The machine's surroundings, and questions about them. Its servers run on a loop in a thread of their own."""

    def __init__(self, folder: Path) -> None:
        self.resolv_conf = folder / "resolv.conf"
        self.resolv_conf.write_text(f"nameserver {NAMES}\n")
        self.hosts = folder / "hosts"
        self.hosts.write_text("127.0.0.1 localhost\n")
        self.asked: list[str] = []
        self.datagrams: list[bytes] = []
        self._file = in_thread(_new_namespace)
        self.internet = Path(f"/proc/{os.getpid()}/fd/{self._file}")
        self._tasks: list[asyncio.Task[None]] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()

    @property
    def names(self) -> MachineNames:
        return MachineNames(self.resolv_conf, self.hosts)

    def build(self) -> None:
        Path("/proc/sys/net/ipv4/ip_forward").write_text("0")  # a new namespace has what the computer has
        batch(
            "link set lo up",
            f"link add wan index 101 type veth peer name far netns {self.internet}",
            f"link add lan index 102 type veth peer name lan-far netns {self.internet}",
            "address add 192.0.2.2/24 dev wan",
            "address add 10.9.0.1/24 dev lan",
            "link set wan up",
            "link set lan up",
            "route add default via 192.0.2.1",
        )
        batch(
            "link set lo up",
            "address add 192.0.2.1/24 dev far",
            "address add 10.9.0.2/24 dev lan-far",
            "link set far up",
            "link set lan-far up",
            *(f"address add {address}/32 dev lo" for address in INTERNET),
            namespace=self.internet,
        )
        batch("link show wan", "link show lan")  # makes the kernel notice that the other ends are up
        self.greet(self.internet, 80)
        self._serve(self.internet, (NAMES, 53), self._serve_names)
        self._hear(self.internet, (NAMES, 53), self._named)
        self._hear(self.internet, ("", 9000), self.datagrams.append)
        for port in SERVICES.values():
            self.greet(None, port)

    def greet(self, where: Path | None, port: int) -> None:
        """A service in that namespace, on all its addresses."""
        self._serve(where, ("", port), self._greet)

    def serve_names_here(self, address: str) -> None:
        """A resolver on an address of the machine."""
        self._hear(None, (address, 53), self._named)

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(_end_tasks(), self._loop).result(LIMIT_SEC)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(LIMIT_SEC)
        self._loop.close()
        os.close(self._file)

    def _serve(self, where: Path | None, address: tuple[str, int], answer: Answer) -> None:
        listener = inside(where, lambda: socket.create_server(address))

        async def serve() -> None:
            async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                try:
                    await answer(reader, writer)
                except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                    pass
                finally:
                    writer.close()

            server = await asyncio.start_server(client, sock=listener)
            try:
                await asyncio.Event().wait()
            finally:
                server.close()

        self._start(serve())

    def _hear(self, where: Path | None, address: tuple[str, int], hear: Callable[[bytes], bytes | None]) -> None:
        receiver = inside(where, lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        receiver.bind(address)

        class Ear(asyncio.DatagramProtocol):
            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                self.transport = transport

            def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
                if reply := hear(data):
                    assert isinstance(self.transport, asyncio.DatagramTransport)
                    self.transport.sendto(reply, addr)

        async def serve() -> None:
            transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(Ear, sock=receiver)
            try:
                await asyncio.Event().wait()
            finally:
                transport.close()

        self._start(serve())

    def _start(self, work: Coroutine[None, None, None]) -> None:
        started = threading.Event()

        def start() -> None:
            self._tasks.append(self._loop.create_task(work))
            self._loop.call_soon(started.set)

        self._loop.call_soon_threadsafe(start)
        assert started.wait(LIMIT_SEC)

    async def _greet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Says which address was reached and who came, then echoes."""
        here, there = writer.get_extra_info("sockname")[0], writer.get_extra_info("peername")[0]
        writer.write(f"{here} greets {there}\n".encode())
        while data := await reader.read(4096):
            writer.write(data)

    async def _serve_names(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        (length,) = struct.unpack("!H", await reader.readexactly(2))
        reply = self._named(await reader.readexactly(length), limit=65535)
        writer.write(struct.pack("!H", len(reply)) + reply)
        await writer.drain()

    def _named(self, data: bytes, limit: int = 512) -> bytes:
        question = dns.read_question(data)
        self.asked.append(question.name)
        if question.name not in ZONE:
            return dns.answer(question, dns.NO_SUCH_NAME)
        addresses = [dns.Address(IPv4Address(value), 60) for value in ZONE[question.name]]
        reply = dns.answer(question, addresses=addresses)
        return reply if len(reply) <= limit else dns.answer(question, flags=dns.TRUNCATED)


@contextmanager
def world(folder: Path) -> Iterator[World]:
    """The calling thread is on the machine for the block."""
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    os.unshare(os.CLONE_NEWNET)
    try:
        made = World(folder)
        try:
            made.build()
            yield made
        finally:
            made.close()
    finally:
        os.setns(home, os.CLONE_NEWNET)
        os.close(home)


def run(*commands: str) -> str:
    """Runs commands on the machine and gives what they printed."""
    return "".join(
        subprocess.run(command.split(), check=True, capture_output=True, text=True).stdout for command in commands
    )


def batch(*commands: str, namespace: Path | None = None) -> None:
    """Has ``ip`` do several things."""
    enter = [] if namespace is None else ["nsenter", f"--net={namespace}"]
    subprocess.run([*enter, "ip", "-batch", "-"], input="\n".join(commands), check=True, capture_output=True, text=True)


def in_thread[T](work: Callable[[], T]) -> T:
    """Has a thread of its own do it, whose namespace does not matter afterwards."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(work).result()


def inside[T](namespace: Path | None, work: Callable[[], T]) -> T:
    """Has something done by a program of that namespace; ``None`` for the machine."""
    if namespace is None:
        return in_thread(work)

    def enter() -> T:
        file = os.open(namespace, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.setns(file, os.CLONE_NEWNET)
        finally:
            os.close(file)
        return work()

    return in_thread(enter)


def greeting(namespace: Path | None, address: str, port: int = 80, timeout: float = 2.0) -> str:
    """What a server says to a program of that namespace; or the error that the program sees."""

    def connect() -> str:
        try:
            with socket.create_connection((address, port), timeout=timeout) as connection:
                connection.settimeout(LIMIT_SEC)  # the kernel connects by itself; the server may take its time
                return connection.recv(100).decode()
        except OSError as error:
            return f"{type(error).__name__}: {error}"

    return inside(namespace, connect)


def reaches(namespace: Path | None, address: str, port: int = 80, timeout: float = 2.0) -> bool:
    return greeting(namespace, address, port, timeout).startswith(f"{address} greets ")


def look_up(
    namespace: Path,
    resolv_conf: str,
    name: str,
    *,
    kind: int = dns.A,
    stream: bool = False,
    within_sec: float = LIMIT_SEC,
) -> list[str] | int:
    """What the sandbox's name server says: addresses, or the code of an error. ``-1`` if it says nothing."""
    server = resolv_conf.split()[1]
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    query = struct.pack("!HHHHHH", 4711, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack("!HH", kind, 1)

    def ask() -> list[str] | int:
        how = socket.SOCK_STREAM if stream else socket.SOCK_DGRAM
        with socket.socket(socket.AF_INET, how) as connection:
            connection.settimeout(within_sec)
            try:
                connection.connect((server, 53))
                if stream:
                    connection.sendall(struct.pack("!H", len(query)) + query)
                    length = struct.unpack("!H", connection.recv(2, socket.MSG_WAITALL))[0]
                    reply = connection.recv(length, socket.MSG_WAITALL)
                else:
                    connection.send(query)
                    reply = connection.recv(4096)
            except OSError:
                return -1
        assert reply[:2] == query[:2]
        if code := dns.result(reply):
            return code
        return [str(found.value) for found in dns.read_answer(reply, dns.read_question(query))]

    return inside(namespace, ask)


def _new_namespace() -> int:
    os.unshare(os.CLONE_NEWNET)
    return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


async def _end_tasks() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
