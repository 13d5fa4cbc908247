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
from seatrial.system.file_owner import open_owned

_FILE = "secret.key"
_LONGEST = 1 << 16


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
    """Written beside and linked into place: two processes that start together end up with the same key."""
    try:
        if not os.path.lexists(path):
            fresh = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
            with os.fdopen(open_owned(fresh, os.O_WRONLY | os.O_CREAT), "w") as file:
                file.write(secrets.token_urlsafe(32))
            with contextlib.suppress(FileExistsError):
                os.link(fresh, path, follow_symlinks=False)
            fresh.unlink()
        with os.fdopen(open_owned(path, os.O_RDONLY)) as file:
            return file.read(_LONGEST)
    except PermissionError as fault:
        raise SetupProblem(
            f"The secret key {path} cannot be read: {fault.strerror}.",
            fix="Give it the owner of its folder (chown), or set SEATRIAL_SECRET_KEY.",
        ) from fault
