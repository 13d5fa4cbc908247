"""Small HTTP servers on loopback that answer as the ECS agent and the EC2 metadata service do."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx

from tests.waiting import LIMIT_SEC


class _Handler(BaseHTTPRequestHandler):
    place: Any

    def do_GET(self) -> None:
        self._respond("GET", b"")

    def do_PUT(self) -> None:
        self._respond("PUT", self.rfile.read(int(self.headers.get("Content-Length", 0))))

    def do_POST(self) -> None:
        self._respond("POST", self.rfile.read(int(self.headers.get("Content-Length", 0))))

    def _respond(self, method: str, body: bytes) -> None:
        status, text = self.place.answer(method, self.path, dict(self.headers.items()), body)
        content = text.encode()
        self.send_response_only(status)
        moment = self.place.now
        self.send_header("Date", format_datetime(moment, usegmt=True) if moment else self.date_time_string())
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *arguments: Any) -> None:
        pass


@contextmanager
def serving(place: Any) -> Iterator[str]:
    """The address of a server that answers with ``place.answer``."""
    handler = type("Handler", (_Handler,), {"place": place})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


class Front:
    """Stands before another server until it goes away."""

    now: datetime | None = None

    def __init__(self, target: str) -> None:
        self.target = target
        self.is_away = False

    def answer(self, method: str, path: str, headers: dict[str, str], body: bytes) -> tuple[int, str]:
        if self.is_away:
            return 503, ""
        passed_on = {name: value for name, value in headers.items() if name.lower() != "content-length"}
        answer = httpx.request(method, self.target + path, headers=passed_on, content=body, timeout=LIMIT_SEC)
        return answer.status_code, answer.text


class EcsAgent:
    """The endpoint for the protection of a task."""

    now: datetime | None = None

    def __init__(self) -> None:
        self.is_protected = False
        self.is_away = False
        self.refuses = False
        self.wishes: list[dict[str, Any]] = []

    def answer(self, method: str, path: str, headers: dict[str, str], body: bytes) -> tuple[int, str]:
        if self.is_away:
            return 500, "Internal Server Error"
        if (method, path) != ("PUT", "/api/task-1/task-protection/v1/state"):
            return 404, json.dumps({"error": {"Code": "InvalidParameterException", "Message": path}})
        wish = json.loads(body)
        self.wishes.append(wish)
        arn = "arn:aws:ecs:us-west-2:111122223333:task/1"
        if self.refuses:
            reason = "The task has been marked for termination."
            return 400, json.dumps({"failure": {"Arn": arn, "Detail": reason, "Reason": "TASK_NOT_VALID"}})
        self.is_protected = wish["ProtectionEnabled"]
        return 200, json.dumps({"protection": {"ProtectionEnabled": self.is_protected, "TaskArn": arn}})


class Metadata:
    """The metadata service, version 2: no value without a token."""

    def __init__(self, values: dict[str, str]) -> None:
        self.values = values
        self.token = "token-1"
        self.is_away = False
        self.now: datetime | None = None
        self.tokens_given = 0

    def answer(self, method: str, path: str, headers: dict[str, str], body: bytes) -> tuple[int, str]:
        told = {name.lower(): value for name, value in headers.items()}
        if self.is_away:
            return 503, ""
        if (method, path) == ("PUT", "/latest/api/token"):
            self.tokens_given += 1
            return (200, self.token) if "x-aws-ec2-metadata-token-ttl-seconds" in told else (400, "")
        if told.get("x-aws-ec2-metadata-token") != self.token:
            return 401, ""
        value = self.values.get(path.removeprefix("/latest/meta-data/"))
        return (404, "") if value is None else (200, value)


class AutoScalingActions:
    """Remembers every action of the query protocol, also those that moto does not know."""

    now: datetime | None = None

    def __init__(self, group: str) -> None:
        self.group = group
        self.is_protected = False
        self.bodies: list[str] = []

    def answer(self, method: str, path: str, headers: dict[str, str], body: bytes) -> tuple[int, str]:
        text = body.decode()
        self.bodies.append(text)
        if "Action=DescribeAutoScalingInstances" in text:
            row = f"<AutoScalingGroupName>{self.group}</AutoScalingGroupName><InstanceId>i-1</InstanceId>"
            row += "<LifecycleState>InService</LifecycleState>"
            row += f"<ProtectedFromScaleIn>{str(self.is_protected).lower()}</ProtectedFromScaleIn>"
            found = f"<AutoScalingInstances><member>{row}</member></AutoScalingInstances>"
            return 200, _xml("DescribeAutoScalingInstances", found)
        if "Action=SetInstanceProtection" in text:
            self.is_protected = "ProtectedFromScaleIn=true" in text
            return 200, _xml("SetInstanceProtection", "")
        return 200, _xml("CompleteLifecycleAction", "")


def _xml(action: str, result: str) -> str:
    return f"<{action}Response><{action}Result>{result}</{action}Result></{action}Response>"
