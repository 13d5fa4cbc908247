"""Stands between a client and the S3 server of the tests, keeps what was asked, and fails as it is told."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    headers: dict[str, str]


@dataclass
class Front:
    endpoint: str
    behind: str
    faults: list[str] = field(default_factory=list)
    """What happens to the next requests, one each: ``503``, another status, ``hang``, ``cut``; ``""`` lets it pass."""
    always: str = ""
    """What happens to all requests after those."""
    asked: list[Asked] = field(default_factory=list)
    let_go: threading.Event = field(default_factory=threading.Event)

    def next_fault(self, asked: Asked) -> str:
        self.asked.append(asked)
        return self.faults.pop(0) if self.faults else self.always


@contextmanager
def s3_front(behind: str) -> Iterator[Front]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    server.front = Front(f"http://127.0.0.1:{server.server_port}", behind)  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.front  # type: ignore[attr-defined]
    finally:
        server.front.let_go.set()  # type: ignore[attr-defined]
        server.shutdown()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _serve(self) -> None:
        front: Front = self.server.front  # type: ignore[attr-defined]
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        fault = front.next_fault(Asked(self.command, self.path, headers))
        if fault == "hang":
            front.let_go.wait(300)
            self.close_connection = True
        elif fault.isdigit():
            self._refuse(int(fault), headers)
        else:
            self._pass_on(front, body, cut=fault == "cut")

    def _refuse(self, status: int, headers: dict[str, str]) -> None:
        """As AWS answers a wrong signature: with the request as it should have been signed."""
        signed = "\n".join(f"{name}:{value}" for name, value in headers.items()).replace("\n", "&#10;")
        code = {403: "SignatureDoesNotMatch", 503: "SlowDown", 507: "XMinioStorageFull"}.get(status, "InternalError")
        said = headers.get("x-amz-security-token", "")
        text = (
            f"<Error><Code>{code}</Code><Message>{said}</Message><CanonicalRequest>{signed}</CanonicalRequest></Error>"
        )
        self._answer(status, {}, b"" if self.command == "HEAD" else text.encode())

    def _pass_on(self, front: Front, body: bytes, cut: bool) -> None:
        to = urlsplit(front.behind)
        connection = http.client.HTTPConnection(to.hostname or "", to.port or 80, timeout=60)
        try:
            connection.request(self.command, self.path, body, dict(self.headers.items()))
            answer = connection.getresponse()
            content = answer.read()
            kept = {name: value for name, value in answer.getheaders() if name.lower() not in _OWN}
            if self.command == "HEAD":
                kept["Content-Length"] = answer.getheader("content-length") or "0"
            self._answer(answer.status, kept, content, cut=cut)
        finally:
            connection.close()

    def _answer(self, status: int, headers: dict[str, str], content: bytes, cut: bool = False) -> None:
        self.send_response(status)
        for name, value in ({"Content-Length": str(len(content))} | headers).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content[: len(content) // 2] if cut else content)
        self.close_connection = cut

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _serve  # noqa: N815

    def log_message(self, *args: object) -> None:
        pass


_OWN = frozenset({"connection", "transfer-encoding", "content-length", "date", "server", "keep-alive"})
