"""Log format of service processes: one line per record, as text or JSON, on standard error.

``noting`` adds the request, trial, try and job to all lines of the current asyncio task.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from types import MappingProxyType

from seatrial.domain.terminal_text import harmless
from seatrial.redact import RedactingFilter, Redactor, teach_settings
from seatrial.settings import Settings

_about: ContextVar[Mapping[str, str | int]] = ContextVar("seatrial_log_about", default=MappingProxyType({}))
_QUIET = ("uvicorn", "uvicorn.error", "alembic", "httpx", "LiteLLM", "aiosqlite", "celery", "kombu")
"""Libraries that are too verbose at INFO."""


@contextmanager
def noting(**fields: str | int) -> Iterator[None]:
    """Lines written inside carry these fields: ``request_id``, ``trial_id``, ``try``, ``job_id``."""
    token = _about.set({**_about.get(), **fields})
    try:
        yield
    finally:
        _about.reset(token)


def write_logs(settings: Settings) -> Redactor:
    """Called once by the entry point of a process. The redactor removes known secrets."""
    redactor = Redactor()
    teach_settings(redactor, settings)
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(_note)
    handler.addFilter(RedactingFilter(redactor))
    handler.setFormatter(JsonLines() if settings.log_format == "json" else TextLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(settings.log_level.upper())
    handler.setLevel(root.level)  # loggers of libraries that set their own level
    for name in _QUIET:
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))
    return redactor


def _note(record: logging.LogRecord) -> bool:
    """Fields of a line: those of ``noting``, and its own ``extra={"about": {…}}``."""
    record.about = {**_about.get(), **getattr(record, "about", {})}
    return True


class TextLines(logging.Formatter):
    """``2026-01-31T12:00:00.000Z INFO seatrial.worker message trial_id=3 try=1``"""

    def format(self, record: logging.LogRecord) -> str:
        fields = "".join(f" {name}={value}" for name, value in getattr(record, "about", {}).items())
        line = f"{_time(record)} {record.levelname} {record.name} {record.getMessage()}{fields}"
        return harmless(f"{line}\n{record.exc_text}" if record.exc_text else line)


class JsonLines(logging.Formatter):
    """One JSON object per line; a traceback is one of its fields."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": _time(record),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "about", {}),
        }
        if record.exc_text:
            line["exception"] = record.exc_text
        return json.dumps(line, default=str, ensure_ascii=False)


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
