"""The SQL store changes rows of trials in four statements only. Each of them is compared with ``transition``.

``change._write_back`` writes what ``transition`` returned. For the other three, ``tests/contracts/store`` compares the
row with what ``transition`` gives. A new statement has to be added here, together with such a test.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from seatrial.adapters import store_sql

FOLDER = Path(store_sql.__file__).parent
KNOWN = {"change._write_back", "claims._take", "trials._renew", "trials._enter"}


def writes_of(module: str, source: str) -> set[str]:
    """The names of the module's statements that update trials; ``?`` for one without a name or in plain SQL."""
    found = set()
    for statement in ast.parse(source).body:
        for node in ast.walk(statement):
            text = ast.unparse(node) if isinstance(node, ast.Call) else ""
            plain = isinstance(node, ast.Constant) and "update trials" in str(node.value).lower()
            if plain or text in ("sa.update(trials)", "trials.update()"):
                target = statement.targets[0] if isinstance(statement, ast.Assign) else None
                found.add(f"{module}.{target.id if isinstance(target, ast.Name) else '?'}")
    return found


def test_only_known_statements_change_trials() -> None:
    found = {write for path in FOLDER.glob("*.py") for write in writes_of(path.stem, path.read_text())}
    assert found == KNOWN


@pytest.mark.parametrize(
    "source",
    [
        "_end = sa.update(trials).where(trials.c.id == 1)",
        "def end(connection):\n    connection.execute(sa.update(trials).values(state='ended'))",
        "def end(connection):\n    connection.execute(trials.update().values(state='ended'))",
        "_end = sa.text('UPDATE trials SET state = 1')",
    ],
)
def test_a_further_statement_is_found(source: str) -> None:
    assert writes_of("other", source) and not writes_of("other", source) & KNOWN
