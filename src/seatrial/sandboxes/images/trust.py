"""Extra certificates that builds trust, for networks with an inspecting proxy.

``debian`` adds them to the bases that it makes, ``rewrite`` to bases that were pulled.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from seatrial.errors import SetupProblem
from seatrial.sandboxes.images.canonical import assignment, command, copying
from seatrial.sandboxes.images.image import ImageConfig

_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----\n?", re.DOTALL)
LABEL_TRUST = "seatrial.trust"
"""Digest of the certificates that were added to an image."""


@dataclass(frozen=True, slots=True)
class Trust:
    """One file for each certificate, because ``update-ca-certificates`` takes no bundles."""

    digest: str
    files: dict[str, str]
    bundle: str = "/etc/ssl/certs/ca-certificates.crt"
    folder: str = "/usr/local/share/ca-certificates"
    variables: tuple[str, ...] = (
        "SSL_CERT_FILE",
        "CURL_CA_BUNDLE",
        "REQUESTS_CA_BUNDLE",
        "PIP_CERT",
        "NODE_EXTRA_CA_CERTS",
    )
    """Set during a build only."""

    @classmethod
    def read(cls, path: Path | None) -> Trust | None:
        if path is None:
            return None
        try:
            text = path.read_text(errors="replace")
        except OSError as error:
            raise SetupProblem(f"The CA bundle {path} cannot be read: {error.strerror}.") from error
        found = list(dict.fromkeys(_CERTIFICATE.findall(text)))
        if not found:
            raise SetupProblem(f"The CA bundle {path} has no certificate.", fix="It has to be in PEM format.")
        files = {f"seatrial-{index:03}.crt": pem.rstrip() + "\n" for index, pem in enumerate(found)}
        digest = hashlib.sha256("".join(files.values()).encode()).hexdigest()
        return cls(digest, files)

    def is_in(self, config: ImageConfig) -> bool:
        return config.labels.get(LABEL_TRUST) == self.digest

    def instructions(self, source: str) -> list[str]:
        """Lines of a Dockerfile that add the certificates in ``source``, a folder of the context."""
        folder, bundle = self.folder, self.bundle
        append = f"mkdir -p /etc/ssl/certs && cat {folder}/seatrial-*.crt >> {bundle}"
        return [
            copying("COPY", (), [source, f"{folder}/"]),
            command("RUN", ["/bin/sh", "-c", append]),
            assignment("LABEL", LABEL_TRUST, self.digest),
        ]

    def add_to(self, root: Path) -> None:
        """The same for a root file system in a folder."""
        folder = root / self.folder.lstrip("/")
        folder.mkdir(parents=True, exist_ok=True)
        for name, pem in self.files.items():
            (folder / name).write_text(pem)
        bundle = root / self.bundle.lstrip("/")
        bundle.parent.mkdir(parents=True, exist_ok=True)
        with bundle.open("a") as stream:
            stream.writelines(self.files.values())
