"""``/docs``: interactive API documentation, without loading anything from the internet."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from fastapi import APIRouter, FastAPI
from fastapi.responses import HTMLResponse, Response
from fastapi.staticfiles import StaticFiles

from seatrial.api.routes.router import take_routes

router = APIRouter(include_in_schema=False)
_POLICY = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'none'"
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="color-scheme" content="light dark">
<title>Seatrial API</title>
<script src="docs/theme.js"></script>
<link rel="stylesheet" href="docs/static/swagger-ui.css">
<link rel="icon" href="docs/static/favicon.png">
</head>
<body>
<div id="page"></div>
<script src="docs/static/swagger-ui-bundle.js"></script>
<script src="docs/start.js"></script>
</body>
</html>
"""
_THEME = """// Before anything is painted, and again when the page in another tab or the system changes its theme.
(function () {
  var system = matchMedia("(prefers-color-scheme: dark)");
  function apply() {
    var wanted = localStorage.getItem("seatrial.theme");
    var dark = wanted === "dark" || (wanted !== "light" && system.matches);
    document.documentElement.classList.toggle("dark-mode", dark);
    document.documentElement.style.colorScheme = dark ? "dark" : "light";
  }
  apply();
  system.addEventListener("change", apply);
  addEventListener("storage", apply);
})();
"""
_START = """SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#page",
  deepLinking: true,
  presets: [SwaggerUIBundle.presets.apis, SwaggerUIBundle.SwaggerUIStandalonePreset],
});
"""


@router.get("/docs")
async def docs() -> HTMLResponse:
    return HTMLResponse(_PAGE, headers={"Content-Security-Policy": _POLICY})


@router.get("/docs/start.js")
async def start() -> Response:
    """A separate file, so that the page needs no inline script and no exception in the content security policy."""
    return Response(_START, media_type="text/javascript")


@router.get("/docs/theme.js")
async def theme() -> Response:
    """Follows the theme that was chosen on the page."""
    return Response(_THEME, media_type="text/javascript")


def add_docs(app: FastAPI) -> None:
    take_routes(app, [router])
    app.mount("/docs/static", StaticFiles(directory=_static_folder()), name="docs-static")


def _static_folder() -> Path:
    """Located without importing the package, which would create an application of its own."""
    spec = find_spec("fastapi_offline")
    assert spec is not None and spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0]) / "static"
