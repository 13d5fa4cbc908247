"""What goes wrong on the way: a service that restarts in the middle of a stream, answers that get lost, no service."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from seatrial import AgentRequest, AsyncClient, Client, JobRequest
from seatrial.client import Message
from seatrial.domain.event import Event
from seatrial.domain.output import Output
from seatrial.errors import Forbidden, ServiceUnavailable, Unauthenticated
from seatrial.testing.lasting_port import lasting_port
from tests.command_line import SAMPLES, CommandLine
from tests.live_processes import worker_process
from tests.running_service import RunningService
from tests.waiting import LIMIT_SEC, until

TASK = SAMPLES / "answer-file"


@dataclass
class Restartable:
    """``seatrial up`` without workers on a port that it keeps."""

    cli: CommandLine
    port: int
    up: RunningService

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def stop(self) -> None:
        self.up.tell(signal.SIGTERM)
        assert self.up.ended().status == 0

    def start(self) -> None:
        self.up = RunningService.start(self.cli, "--port", str(self.port), "--workers", "0")

    def restart(self) -> None:
        self.stop()
        self.start()


@pytest.fixture
def service(cli: CommandLine) -> Restartable:
    port = lasting_port()
    return Restartable(cli, port, RunningService.start(cli, "--port", str(port), "--workers", "0"))


def _wanted(client: Client, attempts: int) -> JobRequest:
    [taken] = client.tasks.upload(TASK)
    agents = (AgentRequest(name="oracle"),)
    return JobRequest(tasks=(taken.tasks[0].digest,), agents=agents, attempts=attempts)


def _facts(messages: list[Message]) -> list[int]:
    return [message.body.seq for message in messages if isinstance(message.body, Event)]


def test_a_stream_goes_on_after_a_restart(service: Restartable, cli: CommandLine) -> None:
    with Client(service.address) as client, worker_process(cli.home, seconds=1.5, capacity=2):
        job = client.jobs.create(_wanted(client, attempts=8))
        heard: list[Message] = []
        for message in client.events.job(job.id):
            heard.append(message)
            if len(heard) == 6:
                service.restart()
        whole = list(client.events.job(job.id))
    assert _facts(heard) == _facts(whole)
    assert Counter(message.kind for message in heard)["trial.ended"] == 8
    assert heard[-1].kind == "job.ended"


async def test_a_stream_and_a_wait_on_a_loop_outlive_a_restart(service: Restartable, cli: CommandLine) -> None:
    with Client(service.address) as client:
        wanted = _wanted(client, attempts=6)
    with worker_process(cli.home, seconds=1.5, capacity=2):
        async with AsyncClient(service.address) as loop_client:
            job = await loop_client.jobs.create(wanted)
            waiting = asyncio.create_task(loop_client.jobs.wait(job.id, timeout=LIMIT_SEC))
            heard: list[Message] = []
            async for message in loop_client.events.job(job.id):
                heard.append(message)
                if len(heard) == 4:
                    await asyncio.to_thread(service.restart)
            assert _facts(heard) == _facts([message async for message in loop_client.events.job(job.id)])
            assert (await waiting).counts.passed == 6


def test_what_a_trial_writes_is_told_live(service: Restartable, cli: CommandLine) -> None:
    """The worker starts once somebody listens: output is not kept for those who come after the trial."""
    with Client(service.address) as client, ThreadPoolExecutor(1) as thread:
        job = client.jobs.create(_wanted(client, attempts=1))
        [trial] = list(client.trials.list(job=job.id))
        listening = thread.submit(lambda: [message.body for message in client.events.trial(trial.id)])
        with service.up.client() as http:
            until(lambda: "seatrial_event_listeners 1.0" in http.get("/metrics").text, "somebody listens")
        with worker_process(cli.home, seconds=3, capacity=1):
            texts = [body.text for body in listening.result(LIMIT_SEC) if isinstance(body, Output)]
    assert "".join(texts).startswith("0 ")


def test_no_service_is_said_and_not_waited_for_too_long(service: Restartable) -> None:
    with Client(service.address, patience=1) as client:
        job = client.jobs.create(_wanted(client, attempts=1))
        service.stop()
        with pytest.raises(ServiceUnavailable, match=f"127.0.0.1:{service.port} cannot be reached"):
            client.jobs.get(job.id)
        with pytest.raises(ServiceUnavailable):
            list(client.events.job(job.id))
        service.start()
        assert client.jobs.get(job.id).id == job.id


@dataclass
class LostAnswers(httpx.BaseTransport):
    """Hands requests on, and loses the first answers that a test names: the service did what was asked."""

    lose: Callable[[httpx.Request], bool]
    times: int = 1
    seen: list[httpx.Request] = field(default_factory=list)
    inner: httpx.HTTPTransport = field(default_factory=lambda: httpx.HTTPTransport(trust_env=False))

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.seen.append(request)
        answer = self.inner.handle_request(request)
        if self.times and self.lose(request):
            self.times -= 1
            answer.close()
            raise httpx.ReadError("the connection was reset", request=request)
        return answer

    def close(self) -> None:
        self.inner.close()


@contextmanager
def _losing(address: str, path: str, method: str) -> Iterator[tuple[Client, LostAnswers]]:
    transport = LostAnswers(lambda request: request.url.path.endswith(path) and request.method == method)
    with Client(address, transport=transport) as client:
        yield client, transport


def test_a_lost_answer_never_doubles_a_job(service: Restartable) -> None:
    with _losing(service.address, "/jobs", "POST") as (client, transport):
        wanted = _wanted(client, attempts=1)
        job = client.jobs.create(wanted)
        assert [each.id for each in client.jobs.list()] == [job.id]
        posted = [request for request in transport.seen if request.method == "POST" and "/jobs" in request.url.path]
        keys = [request.headers["idempotency-key"] for request in posted]
        assert len(keys) == 2
        assert keys[0] == keys[1]
        assert client.jobs.create(wanted).id != job.id  # another wish, although in the same words


def test_a_lost_answer_to_an_upload_or_a_deletion_is_no_error(service: Restartable, tmp_path: Path) -> None:
    with _losing(service.address, "/tasks", "POST") as (client, _):
        [taken] = client.tasks.upload(TASK)
    with _losing(service.address, taken.tasks[0].digest, "DELETE") as (client, transport):
        client.tasks.delete(taken.tasks[0].digest)
        assert [request.method for request in transport.seen].count("DELETE") == 2


def test_what_may_not_be_repeated_is_not(service: Restartable) -> None:
    with _losing(service.address, "/retry", "POST") as (client, transport):
        job = client.jobs.create(_wanted(client, attempts=1))
        with pytest.raises(ServiceUnavailable):
            client.jobs.retry(job.id)
        assert client.jobs.retry(job.id) == 0  # now the answer is not lost
        assert [request.url.path.endswith("/retry") for request in transport.seen].count(True) == 2


def test_tokens_by_argument_environment_and_address(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    admin = cli.json("token", "create", "boss", "--role", "admin")["secret"]
    up = RunningService.start(cli, "--workers", "0", SEATRIAL_AUTH="token")
    with Client(up.url) as stranger, pytest.raises(Unauthenticated, match="token"):
        next(stranger.jobs.list(), None)
    with Client(up.url, "wrong") as stranger, pytest.raises(Unauthenticated):
        next(stranger.jobs.list(), None)
    with Client(up.url, admin) as client:
        assert client.installation.who_am_i().name == "boss"
        viewer = client.tokens.create("guest", expires="1d")
        assert {token.name for token in client.tokens.list()} == {"boss", "guest"}
        client.keys.set("NOKEYS_API_KEY", "canary-271828")
        assert [key.name for key in client.keys.list()] == ["NOKEYS_API_KEY"]
        client.keys.delete("NOKEYS_API_KEY")
        assert client.keys.list() == []
    with Client(up.url.replace("http://", f"http://{viewer.secret}@")) as client:
        assert client.installation.who_am_i().name == "guest"
        with pytest.raises(Forbidden):
            client.tokens.list()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SEATRIAL_SERVER", up.url)
    monkeypatch.setenv("SEATRIAL_SERVER_TOKEN", viewer.secret)
    with Client() as client:
        assert client.installation.who_am_i().name == "guest"
    with Client(up.url, admin) as client:
        client.tokens.revoke(viewer.id)
    with Client() as client, pytest.raises(Unauthenticated):
        next(client.jobs.list(), None)
