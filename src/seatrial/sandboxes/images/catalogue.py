"""What is in a store, as ``seatrial images list`` shows it."""

from __future__ import annotations

from datetime import UTC, datetime

from seatrial.domain.frozen import Frozen
from seatrial.sandboxes.images.image import LABEL_BOOTSTRAPPED, LABEL_KEY, LABEL_TASK, ImageStore, StoredImage
from seatrial.sandboxes.images.locks import UseRecords
from seatrial.sandboxes.images.references import familiar


class CatalogueLine(Frozen):
    name: str
    """The first reference in its short form; empty for an image that lost its name to a newer one."""
    references: tuple[str, ...]
    digest: str
    source: str
    """``built``, ``bootstrapped``, or ``pulled`` for everything that others made."""
    task: str
    size_bytes: int
    created_at: datetime | None
    used_at: datetime | None


async def catalogue(store: ImageStore, uses: UseRecords) -> list[CatalogueLine]:
    """Most recently used first."""
    lines = [_line(image, uses) for image in await store.list()]
    never = datetime.fromtimestamp(0, UTC)
    return sorted(lines, key=lambda line: line.used_at or line.created_at or never, reverse=True)


def _line(image: StoredImage, uses: UseRecords) -> CatalogueLine:
    used = uses.last_used(image.digest)
    return CatalogueLine(
        name=familiar(image.references[0]) if image.references else "",
        references=image.references,
        digest=image.digest,
        source=_source(image),
        task=image.labels.get(LABEL_TASK, ""),
        size_bytes=image.size_bytes,
        created_at=image.created_at,
        used_at=datetime.fromtimestamp(used, UTC) if used else None,
    )


def _source(image: StoredImage) -> str:
    if LABEL_KEY in image.labels:
        return "built"
    return "bootstrapped" if LABEL_BOOTSTRAPPED in image.labels else "pulled"
