"""The broker's address: checked, with TLS that verifies, and in a form that may be shown."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from seatrial.errors import SetupProblem

_VERIFIED = {"ssl_cert_reqs": "required", "ssl_check_hostname": "true"}


def checked(url: str) -> str:
    """The URL for Celery and for Redis clients. Messages do not repeat the URL, which may contain a password.

    Kombu does not verify certificates of ``rediss://`` unless the URL says so. Here TLS verifies unless the URL says
    otherwise, with ``?ssl_cert_reqs=none``."""
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("redis", "rediss") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        known = False
    if not known:
        raise SetupProblem(
            "The address of the broker is not one of Redis.",
            fix="Set SEATRIAL_BROKER_URL to redis://user:password@host:6379/0, or rediss://… for TLS.",
        )
    if parts.scheme == "redis":
        return url
    return urlunsplit(parts._replace(query=urlencode(_VERIFIED | dict(parse_qsl(parts.query)))))


def shown(url: str) -> str:
    """``redis://host:6379/0``: without account and options."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
