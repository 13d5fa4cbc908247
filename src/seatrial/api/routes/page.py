"""The web page: files built into the package, and one HTML shell for every address that is not a file.

Files under ``assets/`` have a content hash in their name and are cached forever; the shell is always revalidated. Files
compressed at build time are sent as they are to browsers that accept them.
"""

from __future__ import annotations

import mimetypes
from pathlib import Path

from fastapi import Request
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, Response
from starlette.types import Receive, Scope, Send

import seatrial

BUILT = Path(seatrial.__file__).parent / "page"
_FOREVER = "public, max-age=31536000, immutable"
_NOT_PAGES = ("api/", "docs", "openapi.json", "metrics", "health", "ready")


class Page:
    """The built page in a folder, if there is one.

    Only names found in the folder are opened. The list is refreshed after a rebuild.
    """

    def __init__(self, folder: Path = BUILT) -> None:
        self._folder = folder
        self._built_at = 0
        self._listed: frozenset[str] = frozenset()

    @property
    def is_built(self) -> bool:
        return "index.html" in self._files

    @property
    def _files(self) -> frozenset[str]:
        try:
            built_at = (self._folder / "index.html").stat().st_mtime_ns
        except FileNotFoundError:
            return frozenset()
        if built_at != self._built_at:
            found = (file.relative_to(self._folder) for file in self._folder.rglob("*") if file.is_file())
            self._listed = frozenset(name.as_posix() for name in found if not name.name.startswith("."))
            self._built_at = built_at
        return self._listed

    def shell(self, request: Request) -> Response:
        return self._send(request, "index.html", "no-cache")

    def answer(self, request: Request, path: str) -> Response:
        """A file by its exact name, the shell for addresses of the page, otherwise 404."""
        if path in self._files:
            return self._send(request, path, _FOREVER if path.startswith("assets/") else "no-cache")
        if not self.is_built or path.startswith(_NOT_PAGES) or path.startswith("assets/"):
            raise HTTPException(404, "There is nothing at this address.")
        return self.shell(request)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers requests that match no route. A wrong method stays a 405."""
        if scope["type"] != "http" or scope["method"] not in ("GET", "HEAD"):
            raise HTTPException(404, "There is nothing at this address.")
        await self.answer(Request(scope, receive), scope["path"].lstrip("/"))(scope, receive, send)

    def _send(self, request: Request, name: str, keep: str) -> Response:
        headers = {"Cache-Control": keep, "Vary": "Accept-Encoding"}
        media_type = mimetypes.guess_type(name)[0] or "application/octet-stream"
        if f"{name}.gz" in self._files and "gzip" in request.headers.get("accept-encoding", ""):
            headers["Content-Encoding"] = "gzip"
            name = f"{name}.gz"
        return FileResponse(self._folder / name, headers=headers, media_type=media_type)
