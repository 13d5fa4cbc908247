"""What users may import from ``seatrial``, and what a command that needs none of it does not wait for."""

from __future__ import annotations

import subprocess
import sys

import pytest

import seatrial
from seatrial import AsyncClient, Client
from seatrial.client.verbs import Group, Verb

_NAMES = ["AgentRequest", "AsyncClient", "Client", "DatasetRequest", "JobRequest", "TaskSelection", "__version__"]
_VERBS = {
    "tasks": "add_samples delete download files get history list read upload validate",
    "datasets": "create get list take_in tasks",
    "jobs": (
        "add_attempts cancel check circumstances compare comparison create delete estimate failures get grid "
        "leaderboard list pairs report resume retry table trend wait"
    ),
    "trials": "cancel divergence download files get list log logs read recording results retry tests trajectory",
    "triage": "change_job delete_note delete_view get label list neighbours note review save_view search tag unlabel "
    "untag views",
    "links": "create list revoke",
    "events": "all job trial",
    "installation": "agents budget fleet models queue running sandboxes stats who_am_i workers",
    "tokens": "create list revoke",
    "keys": "delete list set",
}


def test_the_public_names() -> None:
    assert seatrial.__all__ == _NAMES
    assert all(getattr(seatrial, name) is not None for name in _NAMES)
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        _ = seatrial.Nonsense


def test_the_verbs_of_both_clients() -> None:
    for client in (Client("http://127.0.0.1:1"), AsyncClient("http://127.0.0.1:1")):
        groups = {name: group for name, group in vars(client).items() if isinstance(group, Group)}
        found = {
            name: " ".join(sorted(verb for verb, value in vars(type(group)).items() if isinstance(value, Verb)))
            for name, group in groups.items()
        }
        assert found == _VERBS
        for name, group in groups.items():
            assert all(getattr(group, verb).__doc__ for verb in found[name].split())


def test_help_loads_neither_a_client_nor_the_domain() -> None:
    code = (
        "import sys, seatrial.cli.main; print(sorted({'httpx', 'pydantic', 'sqlalchemy', 'harbor'} & {*sys.modules}))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"


def test_the_client_loads_no_server() -> None:
    heavy = "{'fastapi', 'starlette', 'sqlalchemy', 'harbor', 'litellm', 'seatrial.wiring', 'seatrial.api'}"
    code = f"import sys, seatrial; seatrial.Client; print(sorted({heavy} & {{*sys.modules}}), 'httpx' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[] True"
