"""The description of the API: checked in, complete, and true to what is answered."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
import uvicorn
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from seatrial.api.app import create_app
from seatrial.settings import Settings
from tests.command_line import ROOT
from tests.integration.api.service import zipped
from tests.task_files import write_task

FILE = ROOT / "docs" / "reference" / "openapi.json"
EXAMPLES = 12
ENDLESS = re.compile(r"/events$")
"""Streams that end when their job does: tests of their own read them."""
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]

schema = schemathesis.openapi.from_path(FILE).exclude(path_regex=ENDLESS.pattern)


@schema.hook
def map_path_parameters(context: Any, path_parameters: dict[str, Any] | None) -> dict[str, Any] | None:
    """Every other number is that of something that is there."""
    for name, value in (path_parameters or {}).items():
        if name.endswith("_id") and isinstance(value, int) and value % 2:
            path_parameters[name] = 1
    return path_parameters


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server on a port of its own, with a task, a job that was cancelled and one that waits."""
    folder: Path = tmp_path_factory.mktemp("described")
    config = uvicorn.Config(
        create_app(Settings(home=folder / "home", cache=folder / "cache", sandbox="oci")), port=0, log_level="warning"
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.05)
    port = server.servers[0].sockets[0].getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    try:
        with httpx.Client(base_url=url, trust_env=False, timeout=30) as http:
            archive = zipped(write_task(folder, "one"))
            http.post("/api/v1/tasks", files=[("files", ("one.zip", archive))]).raise_for_status()
            for _ in range(2):
                http.post("/api/v1/jobs", json={"tasks": ["one"], "attempts": 2}).raise_for_status()
            http.post("/api/v1/jobs/1/cancel").raise_for_status()
        yield url
    finally:
        server.should_exit = True
        thread.join(20)


def test_the_file_is_what_the_service_answers(address: str) -> None:
    served = httpx.get(f"{address}/openapi.json", trust_env=False, timeout=60).json()
    assert served == json.loads(FILE.read_text()), "Run 'make reference'."


def test_docs_need_no_internet(address: str) -> None:
    with httpx.Client(base_url=address, trust_env=False, timeout=60) as http:
        page = http.get("/docs")
        assert page.status_code == 200
        places = re.findall(r'(?:src|href)="([^"]+)"', page.text)
        assert len(places) == 4
        for place in places:
            assert not place.startswith(("http", "//"))
            assert http.get(f"/{place}").status_code == 200, place
        assert "openapi.json" in http.get("/docs/start.js").text


def test_operations_have_clean_names() -> None:
    operations = [
        (path, operation)
        for path, methods in json.loads(FILE.read_text())["paths"].items()
        for operation in methods.values()
    ]
    names = [operation["operationId"] for _, operation in operations]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z][a-z0-9_]*", name) for name in names)
    for path, operation in operations:
        if path.startswith("/api/v1"):
            missing = {"401", "403", "422", "503"} - operation["responses"].keys()
            assert not missing, f"{operation['operationId']} does not tell of {missing}"
            assert operation.get("description"), operation["operationId"]


@schema.parametrize()
@settings(max_examples=EXAMPLES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_no_fault_and_no_undocumented_answer(case: schemathesis.Case, address: str) -> None:
    response = case.call(base_url=address, timeout=60)
    waits_for_a_worker = case.path == "/ready" and response.status_code == 503
    case.validate_response(response, checks=CHECKS[1:] if waits_for_a_worker else CHECKS)
