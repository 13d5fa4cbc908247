"""The description of the API: checked in, complete, and true to what is answered."""

from __future__ import annotations

import asyncio
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
from tests.databases import PostgresDatabases
from tests.described_numbers import DescribedNumber, described_numbers
from tests.integration.api.service import zipped
from tests.task_files import write_task

FILE = ROOT / "docs" / "reference" / "openapi.json"
EXAMPLES = 8
"""For each operation and each store."""
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


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def address(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server on a port of its own, with a task, a job that was cancelled and one that waits; on each store."""
    folder: Path = tmp_path_factory.mktemp("described")
    database = ""
    if request.param == "postgres":
        databases: PostgresDatabases = request.getfixturevalue("postgres_databases")
        database = asyncio.run(databases.fresh())
    config = uvicorn.Config(
        create_app(Settings(home=folder / "home", cache=folder / "cache", sandbox="oci", database_url=database)),
        port=0,
        log_level="warning",
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
        with httpx.Client(base_url=url, trust_env=False, timeout=60) as http:
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
        assert len(places) == 5
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


LARGEST = (2**31 - 1, 2**31, 2**32, 2**63 - 1, 2**63, 2**64, 10**30, -1, -(2**63) - 1)
AS_TEXT = ("after", "baseline", "cursor", "last-event-id", "other")
"""Parameters that are described as text, and hold numbers."""
BODIES = {
    "/api/v1/datasets": {"name": "one"},
    "/api/v1/jobs": {"tasks": ["one"]},
    "/api/v1/jobs/check": {"tasks": ["one"]},
    "/api/v1/jobs/estimate": {"tasks": ["one"]},
}
"""What a body needs besides the number."""
DOCUMENT = json.loads(FILE.read_text())


def numbers_as_text() -> Iterator[DescribedNumber]:
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            for parameter in operation.get("parameters", ()):
                if parameter["name"] in AS_TEXT and "integer" not in str(parameter["schema"]):
                    yield DescribedNumber(method, path, parameter["in"], (parameter["name"],), {})


def sent(number: DescribedNumber, value: int) -> tuple[str, dict[str, Any]]:
    """The address and the other parts of a request that has this value; everything else in it is harmless."""
    operation = DOCUMENT["paths"][number.path][number.method]
    places = {"digest": "sha256:" + "0" * 64}
    parts: dict[str, Any] = {"params": {}, "headers": {}}
    for parameter in operation.get("parameters", ()):
        name = parameter["name"]
        if parameter["in"] == number.place and name == number.name[0]:
            given = f"{value}-{value}" if name == "after" and not number.schema else str(value)
        else:
            given = "1"
        if parameter["in"] == "path":
            places.setdefault(name, given)
        elif given != "1" or parameter["required"]:
            parts["params" if parameter["in"] == "query" else "headers"][name] = given
    if "requestBody" in operation:
        part: Any = value if number.place == "body" else {}
        for name in reversed(number.name if number.place == "body" else ()):
            part = [part] if name == "[]" else {name: part}
        parts["json"] = BODIES.get(number.path, {}) | part
    return re.sub(r"\{([^}]+)\}", lambda found: places[found[1]], number.path), parts


@pytest.fixture(scope="module")
def http(address: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=address, trust_env=False, timeout=60) as client:
        yield client


@pytest.mark.parametrize("number", [*described_numbers(DOCUMENT), *numbers_as_text()], ids=str)
def test_no_number_is_too_large_for_a_store(http: httpx.Client, number: DescribedNumber) -> None:
    ends = () if number.place == "path" else (number.schema.get("minimum"), number.schema.get("maximum"))
    for value in (*LARGEST, *(int(end) for end in ends if end is not None)):
        place, parts = sent(number, value)
        with http.stream(number.method, place, **parts) as answer:
            assert answer.status_code < 500, (value, answer.read())
            if not ENDLESS.search(place):
                answer.read()


def test_a_method_that_is_not_there_is_answered_with_those_that_are(address: str) -> None:
    methods = {"GET", "POST", "PUT", "PATCH", "DELETE"}
    described = json.loads(FILE.read_text())["paths"]
    with httpx.Client(base_url=address, trust_env=False, timeout=60) as http:
        for path in described:
            place = re.sub(r"\{[^}]+\}", "1", path.replace("{digest}", "sha256:" + "0" * 64))
            declared = {method.upper() for other, known in described.items() if _fits(other, place) for method in known}
            for method in methods - declared:
                answer = http.request(method, place)
                assert answer.status_code == 405, (method, path, answer.status_code)
                allowed = {name.strip() for name in answer.headers["allow"].split(",")}
                assert allowed & methods == declared & methods, (method, path, allowed)


def _fits(template: str, place: str) -> bool:
    """One address may fit several paths: ``datasets/import`` and ``datasets/{name}``."""
    return re.fullmatch(re.sub(r"\\\{[^}]+\\\}", "[^/]+", re.escape(template)), place) is not None
