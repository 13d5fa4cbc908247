"""Prepares a process that runs trials. Harbor resolves ``${VAR}`` in a task's files from the process's own environment,
so a worker's environment must hold nothing that a task may not read."""

from __future__ import annotations

import gc
import os

_YOUNG_OBJECTS = 20_000
"""New objects between two looks of the garbage collector. A trial in flight keeps hundreds of them for as long as it
runs; at Python's 700, an eighth of a worker's time went into looking at those of all the others again."""

_HARMLESS = (
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "TERM",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TMPDIR",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "DOCKER_HOST",
    "XDG_RUNTIME_DIR",
)
_HARMLESS_PREFIXES = ("LC_", "PYTHON", "COVERAGE")
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY")


def scrub_environment(sandbox: str = "") -> None:
    """Removes from this process's environment everything a task has no business with; settings are read before.

    One of Harbor's own environments (``harbor:daytona``) needs its provider's variables, so those stay.
    """
    provider = sandbox.partition(":")[2].upper().replace("-", "_") + "_" if sandbox.startswith("harbor:") else ""
    for name, value in list(os.environ.items()):
        if not _is_harmless(name, value) and not (provider and name.startswith(provider)):
            del os.environ[name]
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # its price list would otherwise be fetched at import
    os.environ["HARBOR_TELEMETRY"] = "0"


def collect_less_often() -> None:
    """Has the garbage collector look when there is enough to look at. What has no cycles is freed at once anyway."""
    gc.set_threshold(_YOUNG_OBJECTS)


def _is_harmless(name: str, value: str) -> bool:
    if name.upper() in _PROXIES:
        return "@" not in value  # a proxy's address may carry a password
    return name in _HARMLESS or name.startswith(_HARMLESS_PREFIXES)
