"""Fault 14: two hundred clients that upload a byte now and then. Everybody else notices nothing."""

from __future__ import annotations

import io
import socket
import threading
import time
import zipfile
from collections.abc import Iterator
from contextlib import closing, contextmanager

import httpx

from tests.command_line import SAMPLES, CommandLine
from tests.running_service import RunningService, service_up

SLOW = 200
BOUNDARY = "slow"
HEAD = (
    "POST /api/v1/tasks HTTP/1.1\r\nHost: {host}\r\nContent-Length: 1000000\r\n"
    f"Content-Type: multipart/form-data; boundary={BOUNDARY}\r\n\r\n"
)
BEGIN = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="files"; filename="task.zip"\r\n\r\nPK\x03\x04'


def test_the_service_stays_quick_and_cuts_them(cli: CommandLine) -> None:
    with service_up(cli, "--workers", "0", SEATRIAL_SLOW_CLIENT_SEC="10") as service, service.client() as client:
        upload(client)  # what is first imported is not what is measured
        with slow_clients(service) as slow:
            seconds: list[float] = []
            until = time.monotonic() + 7
            while time.monotonic() < until:
                seconds.append(answer_time(client))
            assert len(slow.open) > 100, "they were not really under way at the same time"
            assert slow.statuses() == {"429"}, "beyond what one may have at once, and no other answer"
            assert len(seconds) >= 100
            assert sorted(seconds)[int(len(seconds) * 0.99)] <= 0.5, sorted(seconds)[-5:]
            assert slow.wait_for_the_rest(60) == SLOW
            assert slow.statuses() == {"408", "429"}
            upload(client)


def answer_time(client: httpx.Client) -> float:
    began = time.perf_counter()
    assert client.get("/health").status_code == 200
    taken = time.perf_counter() - began
    time.sleep(0.01)
    return taken


def upload(client: httpx.Client) -> None:
    """The benign twin: a real task, sent as quickly as it goes."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path in sorted((SAMPLES / "answer-file").rglob("*")):
            if path.is_file():
                archive.write(path, path.relative_to(SAMPLES))
    answer = client.post("/api/v1/tasks", files=[("files", ("task.zip", packed.getvalue(), "application/zip"))])
    assert answer.status_code == 201, answer.text


class SlowClients:
    """Each sends four bytes a second until it is answered or cut; a thread serves them all."""

    def __init__(self, service: RunningService) -> None:
        self._answers: dict[int, bytes] = {}
        self.open: dict[int, socket.socket] = {}
        head = HEAD.format(host=":".join(map(str, service.address))).encode() + BEGIN.encode("latin-1")
        for number in range(SLOW):
            connection = service.connect()
            connection.sendall(head)
            connection.setblocking(False)
            self.open[number] = connection
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._drip)

    def start(self) -> None:
        self._thread.start()

    def statuses(self) -> set[str]:
        return {answer.split(b" ", 2)[1].decode() for answer in self._answers.values() if answer}

    def wait_for_the_rest(self, seconds: float) -> int:
        """How many were answered or cut in the end."""
        deadline = time.monotonic() + seconds
        while self.open and time.monotonic() < deadline:
            time.sleep(0.1)
        return len(self._answers)

    def _drip(self) -> None:
        while not self._stop.wait(0.25) and self.open:
            for number, connection in list(self.open.items()):
                if self._is_over(number, connection):
                    with closing(self.open.pop(number)):
                        pass

    def _is_over(self, number: int, connection: socket.socket) -> bool:
        try:
            answer = connection.recv(4096)
        except BlockingIOError:
            try:
                connection.send(b"x")
                return False
            except OSError:
                answer = b""
        except OSError:
            answer = b""
        self._answers[number] = self._answers.get(number, b"") + answer
        return True

    def close(self) -> None:
        self._stop.set()
        self._thread.join()
        for connection in self.open.values():
            connection.close()


@contextmanager
def slow_clients(service: RunningService) -> Iterator[SlowClients]:
    slow = SlowClients(service)
    slow.start()
    try:
        yield slow
    finally:
        slow.close()
