"""Prepares a process that runs trials. Harbor resolves ``${VAR}`` in a task's files from the process's own environment,
so a worker's environment must hold nothing that a task may not read."""

from __future__ import annotations

import gc
import os

_YOUNG_OBJECTS = 20_000
"""New objects between two runs of the garbage collector. A running trial keeps hundreds of objects; with Python's
default of 700, the collector took an eighth of a worker's time to check those of all trials again."""

_HARMLESS = frozenset(
    {
        "CURL_CA_BUNDLE", "DOCKER_HOST", "HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "REQUESTS_CA_BUNDLE", "SHELL",
        "SSL_CERT_DIR", "SSL_CERT_FILE", "TERM", "TMPDIR", "TZ", "USER", "XDG_RUNTIME_DIR",
    }
)  # fmt: skip
_HARMLESS_PREFIXES = ("LC_", "PYTHON", "COVERAGE")
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY")


def scrub_environment(sandbox: str = "") -> None:
    """Removes all variables from this process's environment that a task must not read. Call it after reading settings.

    One of Harbor's own environments (``harbor:daytona``) needs its provider's variables, so those stay.
    """
    provider = sandbox.partition(":")[2].upper().replace("-", "_") + "_" if sandbox.startswith("harbor:") else ""
    for name, value in list(os.environ.items()):
        if not _is_harmless(name, value) and not (provider and name.startswith(provider)):
            del os.environ[name]
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # otherwise LiteLLM fetches its price list at import
    os.environ["HARBOR_TELEMETRY"] = "0"


def collect_less_often() -> None:
    """Runs the garbage collector less often. Objects without cycles are freed at once anyway."""
    gc.set_threshold(_YOUNG_OBJECTS)


def _is_harmless(name: str, value: str) -> bool:
    if name.upper() in _PROXIES:
        return "@" not in value  # a proxy's address may contain a password
    return name in _HARMLESS or name.startswith(_HARMLESS_PREFIXES)
