"""Removes secrets from logs: known values, and everything that looks like a token or a key.

To set up logging (``seatrial.logs``): create one ``Redactor``, add the installation's secrets (``teach_settings``), and
put ``RedactingFilter(redactor)`` on every *handler*; a filter on a logger does not apply to its children. A formatter
must write ``record.exc_text``, which is already cleaned, and not format ``record.exc_info`` again. ``create_app`` gets
the redactor too, so that it learns keys of requests before anything can log them. It knows neither HTTP nor the store.
"""

from __future__ import annotations

import logging
import re
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import unquote

from seatrial.settings import Settings

BLOT = "[REDACTED]"
_SHORTEST = 6
"""Shorter values would match ordinary text; no provider's key is this short."""
_REMEMBERED = 500

_LOOKS = re.compile(
    r"""
    \bst_[A-Za-z0-9_-]{20,}                                              # a token of ours
    | \bsk-[A-Za-z0-9_-]{16,}                                            # a key as most providers make them
    | (?P<told>(?:openrouter_api_key|api_key|x-provider-key)["']?\s*[=:]\s*["']?)[^\s"'&;,)}]{4,}
    | (?P<scheme>\b(?:bearer|basic)\s+)[A-Za-z0-9._~+/=-]{16,}
    """,
    re.VERBOSE | re.IGNORECASE,
)
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}


class Redactor:
    """Keeps the installation's own secrets for good, and a bounded number of those from requests: the oldest are
    dropped first, so that clients cannot fill the memory. Thread-safe."""

    def __init__(self, remembered: int = _REMEMBERED) -> None:
        self._limit = remembered
        self._own: set[str] = set()
        self._passing: OrderedDict[str, None] = OrderedDict()
        self._longest_first: tuple[str, ...] = ()
        self._lock = threading.Lock()

    def add_permanent(self, values: Iterable[str]) -> None:
        """Adds secrets that are never dropped."""
        with self._lock:
            self._own.update(value for value in values if len(value) >= _SHORTEST)
            self._sort()

    def learn(self, values: Iterable[str]) -> None:
        """Adds secrets of a request."""
        fresh = [value for value in values if len(value) >= _SHORTEST]
        if not fresh:
            return
        with self._lock:
            for value in fresh:
                self._passing[value] = None
                self._passing.move_to_end(value)
            while len(self._passing) > self._limit:
                self._passing.popitem(last=False)
            self._sort()

    def text(self, text: str) -> str:
        for secret in self._longest_first:  # not a pattern: it would have to be recompiled for every key
            if secret in text:
                text = text.replace(secret, BLOT)
        return _LOOKS.sub(lambda found: f"{found['told'] or found['scheme'] or ''}{BLOT}", text)

    def _sort(self) -> None:
        self._longest_first = tuple(sorted({*self._own, *self._passing}, key=len, reverse=True))

    def value(self, value: Any) -> Any:
        """The same for the content of lists and mappings; other values are unchanged."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {key: self.value(inner) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(self.value(inner) for inner in value) if type(value) in (list, tuple) else value
        return value


class RedactingFilter(logging.Filter):
    """Cleans every record: its message, traceback and extra fields."""

    def __init__(self, redactor: Redactor) -> None:
        super().__init__()
        self._redactor = redactor
        self._formatter = logging.Formatter()

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = self._redactor.text(record.getMessage()), None
        if record.exc_info and not record.exc_text:
            record.exc_text = self._formatter.formatException(record.exc_info)
        if record.exc_text:
            record.exc_text = self._redactor.text(record.exc_text)
        if record.stack_info:
            record.stack_info = self._redactor.text(record.stack_info)
        for name in vars(record).keys() - _STANDARD:
            setattr(record, name, self._redactor.value(getattr(record, name)))
        return True


def teach_settings(redactor: Redactor, settings: Settings) -> None:
    """The secrets that this process was started with. Addresses of providers are not secret and stay readable."""
    keys = (value for name, value in settings.provider_environment.items() if not name.endswith(("_URL", "_BASE")))
    passwords = (part for url in (settings.database_url, settings.broker_url) for part in _passwords(url))
    redactor.add_permanent((settings.openrouter_api_key, settings.secret_key, settings.server_token, *keys, *passwords))
    redactor.add_permanent((settings.s3_secret_access_key, settings.s3_session_token))


def _passwords(url: str) -> set[str]:
    """The password in a URL, as it is written there and as it is sent."""
    account, _, _ = url.partition("://")[2].rpartition("@")
    written = account.partition(":")[2]
    return {written, unquote(written)} - {""}
