"""A small registry on loopback: the part of the OCI distribution protocol that buildah and engines speak."""

from __future__ import annotations

import base64
import hashlib
import re
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self
from urllib.parse import parse_qs, urlsplit


class Registry:
    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}
        self.manifests: dict[tuple[str, str], tuple[str, bytes]] = {}
        self.uploads: dict[str, bytes] = {}
        self.asked: list[str] = []
        self.logins: list[str] = []
        """``user:password`` of the requests that brought one."""
        self.wants_login = False
        handler = type("Handler", (_Handler,), {"registry": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._server.server_address[1]}"

    @property
    def tags(self) -> set[str]:
        return {f"{name}:{tag}" for name, tag in self.manifests if not tag.startswith("sha256:")}

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    registry: Registry

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        self.registry.asked.append(f"{self.command} {self.path}")
        given = base64.b64decode(self.headers.get("Authorization", "").removeprefix("Basic ")).decode()
        if given.strip(":"):  # without a login, clients bring an empty one
            self.registry.logins.append(given)
        elif self.registry.wants_login:
            return self._answer(401, headers={"WWW-Authenticate": 'Basic realm="registry"'})
        if self.path == "/v2/":
            return self._answer(200)
        if match := re.fullmatch(r"/v2/(.+)/manifests/([^/]+)", self.path):
            found = self.registry.manifests.get((match[1], match[2]))
            if found is None:
                return self._answer(404, b'{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]}')
            digest = "sha256:" + hashlib.sha256(found[1]).hexdigest()
            return self._answer(200, found[1], {"Content-Type": found[0], "Docker-Content-Digest": digest})
        if match := re.fullmatch(r"/v2/.+/blobs/(sha256:[0-9a-f]+)", self.path):
            blob = self.registry.blobs.get(match[1])
            return self._answer(404) if blob is None else self._answer(200, blob)
        return self._answer(404)

    def do_POST(self) -> None:
        name = self.path.removeprefix("/v2/").partition("/blobs/")[0]
        upload = uuid.uuid4().hex
        self.registry.uploads[upload] = self._body()
        self._answer(202, headers={"Location": f"/v2/{name}/blobs/uploads/{upload}"})

    def do_PATCH(self) -> None:
        upload = urlsplit(self.path).path.rpartition("/")[2]
        self.registry.uploads[upload] += self._body()
        self._answer(202, headers={"Location": urlsplit(self.path).path})

    def do_PUT(self) -> None:
        parts = urlsplit(self.path)
        if match := re.fullmatch(r"/v2/(.+)/manifests/([^/]+)", parts.path):
            body = self._body()
            digest = "sha256:" + hashlib.sha256(body).hexdigest()
            for tag in (match[2], digest):
                self.registry.manifests[match[1], tag] = (self.headers["Content-Type"], body)
            return self._answer(201, headers={"Docker-Content-Digest": digest, "Location": parts.path})
        content = self.registry.uploads.pop(parts.path.rpartition("/")[2]) + self._body()
        digest = parse_qs(parts.query)["digest"][0]
        self.registry.blobs[digest] = content
        return self._answer(201, headers={"Docker-Content-Digest": digest, "Location": parts.path})

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") == "chunked":
            pieces = []
            while size := int(self.rfile.readline(), 16):
                pieces.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(pieces)
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _answer(self, status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Quiet."""
