"""Seals secrets with Fernet (AES and HMAC). The key is ``SEATRIAL_SECRET_KEY``, or created in the home on first use."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
import secrets
from pathlib import Path

from seatrial.errors import SetupProblem
from seatrial.ports.seal import SEPARATOR

_FILE = "secret.key"


class FernetSeal:
    """Reads the key and imports the library when the first secret is sealed or opened."""

    def __init__(self, home: Path, secret: str = "") -> None:
        self._home = home
        self._secret = secret

    def close(self, text: str) -> str:
        from cryptography.fernet import Fernet

        return f"{self.fingerprint()}{SEPARATOR}{Fernet(self._key()).encrypt(text.encode()).decode()}"

    def fingerprint(self) -> str:
        return hashlib.sha256(b"seatrial fingerprint " + self._key()).hexdigest()[:12]

    def open(self, sealed: str) -> str:
        from cryptography.fernet import Fernet, InvalidToken

        mark, separator, text = sealed.rpartition(SEPARATOR)
        try:
            if separator and mark != self.fingerprint():
                raise InvalidToken
            return Fernet(self._key()).decrypt(text.encode()).decode()
        except InvalidToken as fault:
            raise SetupProblem(
                "A stored key was sealed with another secret key.",
                fix="Set SEATRIAL_SECRET_KEY to the one it was sealed with, or enter the key again.",
            ) from fault

    def _key(self) -> bytes:
        """Any text can be the secret key; Fernet needs 32 bytes."""
        secret = self._secret or _read_or_make(self._home / _FILE)
        return base64.urlsafe_b64encode(hashlib.sha256(secret.encode()).digest())


def _read_or_make(path: Path) -> str:
    """Creates the file under another name and links it, so that processes that start together use the same key."""
    if not path.exists():
        fresh = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
        fresh.touch(mode=0o600)
        fresh.write_text(secrets.token_urlsafe(32))
        with contextlib.suppress(FileExistsError):
            os.link(fresh, path)
        fresh.unlink()
    return path.read_text()
