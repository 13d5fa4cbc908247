"""A private Redis server in a temporary directory, for tests. Needs the server's program on this machine.

It listens on loopback unless it is given another address, dies with the process that started it, and writes nothing to
disk.
"""

from __future__ import annotations

import datetime
import ipaddress
import secrets
import shutil
import socket
import ssl
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Self
from urllib.parse import quote

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from seatrial.errors import SetupProblem
from seatrial.system.removal import remove_tree

_START_SEC = 180.0
_PORTS = range(15_000, 30_000)
"""Below those that Linux gives to connections and to servers that name none."""


class RedisServer:
    """``with RedisServer() as server``; then ``server.url``. It can be stopped, and started again at the same place."""

    def __init__(self, password: str = "", *, tls: bool = False, address: str = "127.0.0.1") -> None:
        """Beyond loopback it needs a password: Redis refuses strangers otherwise."""
        program = shutil.which("redis-server")
        if program is None:
            raise SetupProblem("There is no Redis server on this machine.", fix="apt-get install redis-server")
        self._program = program
        self._directory = Path(tempfile.mkdtemp(prefix="seatrial-redis-"))
        self._process: subprocess.Popen[bytes] | None = None
        self._password = password
        self._tls = tls
        self._address = address
        self.port = free_port()
        if tls:
            _write_certificate(self.certificate, self._directory / "key.pem")

    @property
    def url(self) -> str:
        account = f":{quote(self._password, safe='')}@" if self._password else ""
        place = f"{account}{self._address}:{self.port}/0"
        return f"rediss://{place}?ssl_ca_certs={quote(str(self.certificate))}" if self._tls else f"redis://{place}"

    @property
    def certificate(self) -> Path:
        """Signed by itself."""
        return self._directory / "certificate.pem"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()
        remove_tree(self._directory)

    def start(self) -> None:
        with (self._directory / "log").open("ab") as log:
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig=TERM", self._program, *self._options()],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
            )
        self._wait_until_ready()

    def stop(self) -> None:
        """Everything that it held is gone."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(_START_SEC)
        self._process = None

    def command(self, *words: str) -> bytes:
        """Sends one command as plain text and returns the first line of the answer."""
        with self._connected() as connection, connection.makefile("rb") as lines:
            if self._password:
                connection.sendall(f"AUTH {self._password}\r\n".encode())
                lines.readline()
            connection.sendall(" ".join(words).encode() + b"\r\n")
            return lines.readline().strip()

    def _connected(self) -> socket.socket:
        plain = socket.create_connection((self._address, self.port), _START_SEC)
        if not self._tls:
            return plain
        with plain:  # closes it if the handshake fails; otherwise it is detached
            context = ssl.create_default_context(cafile=str(self.certificate))
            return context.wrap_socket(plain, server_hostname="127.0.0.1")

    def _options(self) -> list[str]:
        options = ["--bind", self._address, "--save", "", "--dir", str(self._directory)]
        options += ["--requirepass", self._password] if self._password else []
        if not self._tls:
            return [*options, "--port", str(self.port)]
        key = str(self._directory / "key.pem")
        files = ["--tls-cert-file", str(self.certificate), "--tls-key-file", key]
        return [*options, "--port", "0", "--tls-port", str(self.port), "--tls-auth-clients", "no", *files]

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + _START_SEC
        while True:
            try:
                if self.command("PING") == b"+PONG":
                    return
            except OSError:
                pass
            ended = self._process is None or self._process.poll() is not None
            if ended or time.monotonic() > deadline:
                raise SetupProblem(f"Redis did not start:\n{(self._directory / 'log').read_text()[-2000:]}")
            time.sleep(0.02)


def _write_certificate(certificate: Path, key_file: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "Redis of a test")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    key_file.write_bytes(key.private_bytes(*form))


def free_port() -> int:
    """Of this machine. The kernel gives it to nobody who asks for any port, so it is still free when it is used."""
    while True:
        port = secrets.choice(_PORTS)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
