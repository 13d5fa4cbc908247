"""A task's own environment: nothing of the worker's is filled in, by us or by Harbor after us."""

from __future__ import annotations

import pytest
from harbor.utils.env import resolve_env_vars

from seatrial.errors import Unsupported
from seatrial.sandboxes.own_values import own_values

REFUSED = ["${CANARY}", "${CANARY:?why}", "${X:-${CANARY}}", "${X:-$CANARY}", "${X:-$${CANARY}}", "${A B}", "${X:=x}"]
KEPT = {
    "plain": "plain",
    "": "",
    "$CANARY": "$CANARY",
    "a ${CANARY} b": "a ${CANARY} b",
    "$5 $$": "$5 $$",
    "${X:-default}": "default",
    "${X-default}": "default",
    "${X:-}": "",
    "${X:+y}": "",
    "${X:-${Y:-z}}": "z",
}


@pytest.fixture(autouse=True)
def canary(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CANARY", "told")
    monkeypatch.setenv("A B", "told")


@pytest.mark.parametrize("value", REFUSED)
def test_a_variable_of_the_worker_is_refused(value: str) -> None:
    with pytest.raises(Unsupported, match="WANTED"):
        own_values({"WANTED": value})


@pytest.mark.parametrize("value", KEPT)
def test_other_values_are_the_tasks_own(value: str) -> None:
    ours = own_values({"WANTED": value})
    assert ours == resolve_env_vars(ours) == {"WANTED": KEPT[value]}
