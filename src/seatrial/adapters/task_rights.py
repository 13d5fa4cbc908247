"""What a task asks of the machine beyond resources: an architecture, elevated privileges.

Read when a task is inspected, so that a job's trials wait for workers that can run them. Wrong or unusual files say
nothing here; the inspection and the sandbox refuse them with the reason.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

from seatrial.adapters.task_problems import Problems, is_own_file, read_yaml

_ARCHITECTURES = ("amd64", "arm64", "386", "arm", "ppc64le", "s390x", "riscv64")
_FROM = re.compile(r"^[ \t]*FROM[ \t]+--platform=linux/([a-z0-9]+)", re.IGNORECASE | re.MULTILINE)
_FALSE = (None, False, "", "false", "no", "off")
_LONGEST = 1 << 20


class Rights(NamedTuple):
    architecture: str = ""
    elevated: bool = False


def rights_of(root: Path, compose: str, dockerfile: str) -> Rights:
    """From the files of a task, which need not be there."""
    services = _services(_text(root, compose), compose)
    elevated = any(service.get("privileged") not in _FALSE for service in services)
    wanted = [str(service.get("platform", "")).removeprefix("linux/") for service in services]
    wanted += [found.lower() for found in _FROM.findall(_text(root, dockerfile))]
    known = [name for name in wanted if name in _ARCHITECTURES]
    return Rights(known[-1] if known else "", elevated)


def _services(text: str, name: str) -> list[dict[str, Any]]:
    document = read_yaml(text, name, Problems()) if text else None
    services = document.get("services") if isinstance(document, dict) else None
    return [each for each in services.values() if isinstance(each, dict)] if isinstance(services, dict) else []


def _text(root: Path, path: str) -> str:
    file = root / path
    try:
        if not is_own_file(root, path) or file.stat().st_size > _LONGEST:
            return ""
        return file.read_text(errors="replace")
    except OSError:
        return ""
