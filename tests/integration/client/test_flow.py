"""The whole way with both clients: tasks up, a job through, its results, its files; and away with it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from seatrial import AgentRequest, AsyncClient, Client, DatasetRequest, JobRequest
from seatrial.client import Sent
from seatrial.domain.job import JobStatus
from seatrial.domain.trial import Outcome
from seatrial.errors import Conflict, InvalidInput, InvalidTask, MissingKey, NotFound
from tests.command_line import SAMPLES
from tests.task_files import write_task
from tests.waiting import LIMIT_SEC

ORACLE = AgentRequest(name="oracle")
TASK = SAMPLES / "answer-file"


def _long_job(digest: str) -> JobRequest:
    """Two minutes, one trial at a time: it is not over before the test cancels it."""
    return JobRequest(tasks=(digest,), agents=(ORACLE,), attempts=400, concurrency=1)


def _digest(client: Client) -> str:
    [taken] = client.tasks.upload(TASK)
    return taken.tasks[0].digest


def test_a_job_from_upload_to_deletion(client: Client, tmp_path: Path) -> None:
    told: list[Sent] = []
    [taken] = client.tasks.upload(write_task(tmp_path, "fresh"), progress=told.append)
    assert (taken.filename, taken.error, [task.name for task in taken.tasks]) == ("fresh.zip", None, ["fresh"])
    assert told[-1].sent == told[-1].size > 0
    digest = taken.tasks[0].digest
    assert client.tasks.get(digest).instruction
    assert "instruction.md" in {file.path for file in client.tasks.files(digest)}
    assert client.tasks.read(digest, "instruction.md").decode().strip() == client.tasks.get(digest).instruction.strip()
    assert client.tasks.download(digest, tmp_path / "kept.zip").read_bytes()[:2] == b"PK"

    job = client.jobs.create(JobRequest(name="flow", tasks=(digest,), agents=(ORACLE,), attempts=2))
    ended = client.jobs.wait(job.id, timeout=LIMIT_SEC)
    assert (ended.status, ended.counts.passed, ended.spec.attempts) == (JobStatus.COMPLETED, 2, 2)
    trials = list(client.trials.list(job=job.id))
    assert [trial.outcome for trial in trials] == [Outcome.PASSED, Outcome.PASSED]
    detail = client.trials.get(trials[0].id)
    assert detail.result is not None
    assert client.trials.tests(trials[0].id) == list(detail.result.tests)
    [log] = [log for log in client.trials.logs(trials[0].id) if log.name == "agent/talk.txt"]
    part = client.trials.log(trials[0].id, log.name, offset=-8)
    assert (part.offset, part.size, part.text) == (log.size - 8, log.size, part.text[-8:])
    assert client.trials.read(trials[0].id, log.name)[-8:].decode() == part.text
    copy = client.trials.download(trials[0].id, log.name, tmp_path / "talk.txt")
    assert copy.stat().st_size == log.size
    assert not (tmp_path / "talk.txt.part").exists()
    with pytest.raises(NotFound):
        client.trials.trajectory(trials[0].id)
    assert client.jobs.report(job.id).counts.passed == 2
    assert client.jobs.grid(job.id).tasks[0].name == "fresh"
    assert client.jobs.table(job.id, tmp_path / "trials.csv").read_text().count("\n") == 3

    assert client.jobs.retry(job.id) == 0  # none of them ended in an error
    with pytest.raises(InvalidInput, match="final"):
        client.jobs.retry(job.id, outcomes=[Outcome.PASSED], trials=[trials[0].id])
    assert len(client.jobs.add_attempts(job.id, trials=[trials[0].id])) == 1
    again = client.jobs.wait(job.id, timeout=LIMIT_SEC)
    assert [trial.reruns for trial in client.trials.list(job=job.id)] == [trials[0].id, None, None]
    assert again.ended_at != ended.ended_at
    client.jobs.delete(job.id)
    with pytest.raises(NotFound):
        client.jobs.get(job.id)
    client.tasks.delete(digest)


async def test_the_same_on_an_event_loop(async_client: AsyncClient, tmp_path: Path) -> None:
    client = async_client
    taken = await client.tasks.upload(write_task(tmp_path, "looped"), TASK)
    assert [item.error for item in taken] == [None, None]
    digests = tuple(task.digest for item in taken for task in item.tasks)
    job = await client.jobs.create(JobRequest(tasks=digests, agents=(ORACLE,)))
    waiting = asyncio.create_task(client.jobs.wait(job.id, timeout=LIMIT_SEC))
    kinds = [message.kind async for message in client.events.job(job.id)]
    assert (kinds[0], kinds[-1]) == ("job.created", "job.ended")
    assert (await waiting).counts.passed == 2
    trials = [trial async for trial in client.trials.list(job=job.id, page_size=1)]
    assert len(trials) == 2
    copy = await client.trials.download(trials[0].id, "agent/talk.txt", tmp_path / "talk.txt")
    assert copy.read_bytes() == await client.trials.read(trials[0].id, "agent/talk.txt")
    await client.jobs.delete(job.id)


def test_a_task_that_is_there_is_not_sent(client: Client, tmp_path: Path) -> None:
    task = write_task(tmp_path, "once")
    told: list[Sent] = []
    [first] = client.tasks.upload(task, progress=told.append)
    sent = len(told)
    assert sent
    [second] = client.tasks.upload(task, progress=told.append)
    assert (second.tasks, len(told)) == (first.tasks, sent)
    (task / "instruction.md").write_text("Something else.")
    [third] = client.tasks.upload(task, progress=told.append)
    assert third.tasks[0].digest != first.tasks[0].digest


def test_a_broken_task_loses_nothing_of_the_others(client: Client, tmp_path: Path) -> None:
    folder = tmp_path / "tasks"
    write_task(folder, "good")
    broken = write_task(folder, "broken")
    (broken / "task.toml").write_text("version = ")
    checked = client.tasks.validate(folder)
    assert {(each.name, each.valid) for item in checked for each in item.inspections} == {
        ("good", True),
        ("broken", False),
    }
    taken = {item.filename: item for item in client.tasks.upload(folder)}
    assert [task.name for task in taken["good.zip"].tasks] == ["good"]
    refusal = taken["broken.zip"].error
    assert refusal is not None
    assert "task.toml" in refusal.message
    with pytest.raises(InvalidTask, match=r"task\.toml") as raised:
        client.tasks.upload(broken)
    assert raised.value.problems[0].file.endswith("task.toml")


def test_lists_go_over_all_pages(client: Client) -> None:
    digest = _digest(client)
    made = [
        client.jobs.create(JobRequest(name="paged", tasks=(digest,), agents=(ORACLE,), attempts=1)).id for _ in range(7)
    ]
    listed = [job.id for job in client.jobs.list(name="paged", page_size=2)]
    assert listed == made[::-1]
    first = next(client.jobs.list(name="paged", page_size=2))
    assert first.id == made[-1]
    assert [job.id for job in client.jobs.list(name="paged", before=made[2])] == made[1::-1]
    for job in made:
        client.jobs.wait(job, timeout=LIMIT_SEC)


def test_errors_are_ours_with_the_service_s_words(client: Client) -> None:
    digest = _digest(client)
    with pytest.raises(NotFound, match="987654"):
        client.jobs.get(987654)
    with pytest.raises(InvalidInput, match="no agent 'nobody'") as wrong:
        client.jobs.create(JobRequest(tasks=(digest,), agents=(AgentRequest(name="nobody"),)))
    assert (wrong.value.field, bool(wrong.value.fix)) == ("agent", True)
    with pytest.raises(MissingKey, match="needs a key"):
        client.jobs.create(JobRequest(tasks=(digest,), agents=(AgentRequest(name="terminus-2", model="nokeys/model"),)))
    job = client.jobs.create(_long_job(digest))
    with pytest.raises(Conflict):
        client.jobs.delete(job.id)
    assert client.jobs.cancel(job.id) > 0
    client.jobs.wait(job.id, timeout=LIMIT_SEC)
    assert client.jobs.resume(job.id) > 0
    client.jobs.cancel(job.id)
    client.jobs.wait(job.id, timeout=LIMIT_SEC)
    client.jobs.delete(job.id)


def test_a_key_comes_with_one_job_and_is_shown_nowhere(client: Client) -> None:
    digest, secret = _digest(client), "canary-3141592653"
    wanted = JobRequest(tasks=(digest,), agents=(AgentRequest(name="terminus-2", model="nokeys/model"),))
    with pytest.raises(MissingKey):
        client.jobs.create(wanted)
    job = client.jobs.create(wanted, keys={"NOKEYS_API_KEY": secret})
    assert secret not in client.jobs.wait(job.id, timeout=LIMIT_SEC).model_dump_json()


def test_waiting_has_a_limit(client: Client) -> None:
    job = client.jobs.create(_long_job(_digest(client)))
    with pytest.raises(TimeoutError, match="It continues"):
        client.jobs.wait(job.id, timeout=0.2)
    assert client.jobs.cancel(job.id) > 0, "it did continue"
    client.jobs.wait(job.id, timeout=LIMIT_SEC)


def test_the_installation_tells_about_itself(client: Client) -> None:
    assert {"oracle", "terminus-2"} <= {agent.name for agent in client.installation.agents()}
    assert any(model.ready for model in client.installation.models())
    assert [sandbox.name for sandbox in client.installation.sandboxes() if sandbox.default] == ["auto"]
    assert [worker.alive for worker in client.installation.workers()] == [True]
    assert client.installation.queue().capacity == 4
    assert client.installation.stats().trials.total > 0
    assert client.installation.who_am_i().auth == "none"


def test_datasets_estimates_and_comparisons(client: Client, tmp_path: Path) -> None:
    digests = [task.digest for item in client.tasks.upload(TASK, write_task(tmp_path, "second")) for task in item.tasks]
    made = client.datasets.create(DatasetRequest(name="two", tasks=digests))
    assert client.datasets.get("two", "1") == made == client.datasets.create(DatasetRequest(name="two", tasks=digests))
    assert "two" in {dataset.name for dataset in client.datasets.list()}
    wanted = JobRequest(dataset="two", agents=(ORACLE, AgentRequest(name="nop")))
    assert client.jobs.estimate(wanted).trials == 4
    job = client.jobs.create(wanted)
    client.jobs.wait(job.id, timeout=LIMIT_SEC)
    [comparison] = client.jobs.compare(job.id)
    assert comparison.verdict
    [across] = client.jobs.compare(f"{job.id}:oracle", f"{job.id}:nop")
    assert len(across.tasks) == 2
