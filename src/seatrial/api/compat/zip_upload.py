"""Reads the one archive of a multipart form, for TBench Runner's API: ZIP files only, 400 for every error.

The body streams to disk; its size is checked while it arrives.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from fastapi import HTTPException, Request
from fastapi import UploadFile as FormFile
from starlette.datastructures import FormData, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser

from seatrial.api.routes.uploads import Upload, received

_FIELDS = 50
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")


@dataclass(frozen=True)
class ZipForm:
    """The archive and the other form fields."""

    archive: Upload
    fields: dict[str, str]


@asynccontextmanager
async def received_zip(request: Request, field: str, limit_mb: int) -> AsyncIterator[ZipForm]:
    """Answers 400 if the body is not a form, or the file is missing, too large or not a ZIP archive."""
    form = await _form(request, limit_mb)
    try:
        file = form.get(field)
        if not isinstance(file, UploadFile):
            raise HTTPException(400, f"The form has no file {field!r}.")
        if await file.read(4) not in _ZIP:
            raise HTTPException(400, "The file is not a ZIP archive.")
        await file.seek(0)
        named = FormFile(file.file, size=file.size, filename=file.filename, headers=file.headers)
        async with received([named], limit_mb << 20) as [archive]:
            yield ZipForm(archive, {name: value for name, value in form.items() if isinstance(value, str)})
    finally:
        await form.close()


async def _form(request: Request, limit_mb: int) -> FormData:
    parser = MultiPartParser(request.headers, _counted(request, limit_mb), max_files=1, max_fields=_FIELDS)
    try:
        return await parser.parse()
    except (MultiPartException, KeyError) as error:  # a form without a boundary raises KeyError
        raise HTTPException(400, "The form cannot be read.") from error
    except HTTPException as error:
        if error.status_code == 413:  # raised by the gate for request sizes; this API does not use 413
            raise _too_large(limit_mb) from error
        raise


async def _counted(request: Request, limit_mb: int) -> AsyncGenerator[bytes]:
    size = 0
    async for piece in request.stream():
        size += len(piece)
        if size > limit_mb << 20:
            raise _too_large(limit_mb)
        yield piece


def _too_large(limit_mb: int) -> HTTPException:
    return HTTPException(400, f"The upload is larger than {limit_mb} MB.")
