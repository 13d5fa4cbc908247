"""Says whose files are in a place that several machines can reach.

Trials are numbered by the database. Two installations with one bucket and prefix would overwrite each other's files,
and ``gc`` of one would remove those of the other. So the first one writes its name there.
"""

from __future__ import annotations

from seatrial.errors import NotFound, SetupProblem
from seatrial.ports.blobs import Blobs

KEY = "installation"
_LONGEST = 200


async def claim_place(blobs: Blobs, installation: str, place: str) -> None:
    """Raises ``SetupProblem`` if another installation keeps its files there."""
    try:
        owner = (await blobs.read(KEY, 0, _LONGEST)).decode(errors="replace").strip()
    except NotFound:
        await blobs.put_bytes(KEY, installation.encode())
        return
    if owner != installation:
        raise SetupProblem(
            f"The files of another installation are at {place}.",
            fix=f"Set SEATRIAL_BLOBS_URL to another prefix. If that installation is gone, delete {KEY!r} there.",
        )
