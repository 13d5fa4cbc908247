"""Which cases ``make test`` leaves to ``make long`` and ``make attacks``: they carry the marker ``long``.

A test that runs on several kinds of sandbox runs all its cases on ``oci``. On a further kind, its first case is enough
for ``make test``: it shows that the rule holds there, and the other cases differ in what the kinds share. The kind
``harbor:docker`` is Harbor's; it shows that the suite asks for nothing that Harbor does not do, and one file is enough.
A test may also carry the marker itself, or a case of it may.

``AGAIN``, the list in ``long_cases.txt``, names cases that show a rule which another case of ``make test`` shows
already: in the other theme, at the other width, with the other store, at a second moment. Each takes more than three
seconds.

``tests/conftest.py`` calls this.
"""

from __future__ import annotations

from pathlib import Path

import pytest

FURTHER = ("docker", "oci:runsc")
HARBORS = "harbor:docker"
WHOLE = ("tests/attacks/agent/test_seccomp.py",)
"""Docker's filter is made by code of its own, and the cases of a module share one sandbox."""
WITH_HARBORS = "tests/contracts/sandbox/test_exec.py"
AGAIN = Path(__file__).with_suffix(".txt").read_text().splitlines()
AGAIN_IN = {
    "tests/integration/api/test_openapi.py": "[sqlite]",
    "tests/verifiers/test_generation_03.py": "",
}
"""Of these files, every case whose name ends so. PostgreSQL refuses more than SQLite does; verifiers 0.4 has a file."""


def mark_long_cases(items: list[pytest.Item]) -> None:
    seen: set[tuple[str, str]] = set()
    for item in items:
        kind = _further_kind(item)
        file, _, test = item.nodeid.partition("::")
        if item.nodeid in AGAIN or (file in AGAIN_IN and test.endswith(AGAIN_IN[file])):
            item.add_marker("long")
        if kind is None or file in WHOLE:
            continue
        rule = (f"{file}::{test.partition('[')[0]}", kind)
        if rule in seen or (kind == HARBORS and file != WITH_HARBORS):
            item.add_marker("long")
        elif item.get_closest_marker("long") is None:
            seen.add(rule)


def _further_kind(item: pytest.Item) -> str | None:
    callspec = getattr(item, "callspec", None)
    values = [value for value in callspec.params.values() if isinstance(value, str)] if callspec else []
    return next((value for value in values if value in (*FURTHER, HARBORS)), None)
