"""A registry of packages on the loopback that speaks npm's and pip's language, with packages that a test made."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import tarfile
import threading
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

NODE_AGENT = """#!/usr/bin/env node
const { execFileSync } = require("child_process");
const own = execFileSync(process.execPath, ["-p", "process.version"]).toString().trim();
console.log(JSON.stringify({ agent: "tiny", version: require("./package.json").version, node: own,
  argv: process.argv.slice(2), library_path: process.env.LD_LIBRARY_PATH || "" }));
"""
PYTHON_AGENT = """
import json, subprocess, sys, ssl, sqlite3

def main():
    own = subprocess.run([sys.executable, "-c", "print(1 + 1)"], capture_output=True, text=True).stdout.strip()
    print(json.dumps({"agent": "tiny", "argv": sys.argv[1:], "own": own, "executable": sys.executable}))
"""


@dataclass
class Registry:
    """``asked`` has the paths of all requests. Packages are sent while ``sends`` is set."""

    url: str
    files: dict[str, bytes] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    sends: threading.Event = field(default_factory=threading.Event)

    @property
    def environment(self) -> dict[str, str]:
        """The settings of npm and uv. Other Python packages come from where this machine takes them."""
        return {"npm_config_registry": f"{self.url}/npm/", "UV_EXTRA_INDEX_URL": f"{self.url}/simple/"}

    def add_npm(self, name: str, version: str, files: Mapping[str, str], **about: Any) -> None:
        """Adds a version, which is the latest now."""
        package = {"name": name, "version": version, **about}
        tar = _tar({"package.json": json.dumps(package), **files})
        place = f"/npm/{name}/-/{version}.tgz"
        self.files[place] = tar
        integrity = f"sha512-{base64.b64encode(hashlib.sha512(tar).digest()).decode()}"
        known = json.loads(self.files.get(f"/npm/{name}", b'{"versions": {}}'))
        known["versions"][version] = {**package, "dist": {"tarball": f"{self.url}{place}", "integrity": integrity}}
        document = {"name": name, "dist-tags": {"latest": version}, "versions": known["versions"]}
        self.files[f"/npm/{name}"] = json.dumps(document).encode()

    def add_wheel(self, name: str, version: str, files: Mapping[str, str], commands: Mapping[str, str]) -> None:
        file = f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
        self.files[f"/wheels/{file}"] = _wheel(name, version, files, commands)
        self._link(name, file)

    def add_source(self, name: str, version: str, files: Mapping[str, str]) -> None:
        """A package that would run its own code while it is installed."""
        file = f"{name}-{version}.tar.gz"
        self.files[f"/wheels/{file}"] = _tar(files, f"{name}-{version}")
        self._link(name, file)

    def _link(self, name: str, file: str) -> None:
        page = f"/simple/{name}/"
        self.files[page] = self.files.get(page, b"") + f'<a href="{self.url}/wheels/{file}">{file}</a>\n'.encode()


@contextmanager
def package_registry() -> Iterator[Registry]:
    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = unquote(self.path.partition("?")[0])
            registry.asked.append(path)
            if path.startswith("/wheels/"):
                registry.sends.wait()
            body = registry.files.get(path)
            self.send_response(200 if body is not None else 404)
            self.send_header("Content-Type", "application/json" if path.startswith("/npm") else "text/html")
            self.send_header("Content-Length", str(len(body or b"")))
            self.send_header("Accept-Ranges", "none")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body or b"")

        do_HEAD = do_GET  # noqa: N815 - the name that the server looks for

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    registry = Registry(f"http://127.0.0.1:{server.server_address[1]}")
    registry.sends.set()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield registry
    finally:
        registry.sends.set()
        server.shutdown()
        server.server_close()
        thread.join()


def _tar(files: Mapping[str, str], top: str = "package") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, text in files.items():
            member = tarfile.TarInfo(f"{top}/{name}")
            member.size, member.mode = len(text.encode()), 0o755
            tar.addfile(member, io.BytesIO(text.encode()))
    return buffer.getvalue()


def _wheel(name: str, version: str, files: Mapping[str, str], commands: Mapping[str, str]) -> bytes:
    about = f"{name.replace('-', '_')}-{version}.dist-info"
    scripts = "".join(f"{command} = {target}\n" for command, target in commands.items())
    content = {
        **files,
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{about}/entry_points.txt": f"[console_scripts]\n{scripts}",
    }
    record = "".join(f"{path},,\n" for path in content) + f"{about}/RECORD,,\n"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path, text in {**content, f"{about}/RECORD": record}.items():
            archive.writestr(path, text)
    return buffer.getvalue()
