"""The same request gives the same job, and the same refusal, on this machine and at a service."""

from __future__ import annotations

import shutil

import pytest

from seatrial.cli.backend.request import AgentEntry, RunRequest
from seatrial.domain.task import TaskSelection
from seatrial.errors import InvalidInput, MissingKey, SeatrialError
from tests.contracts.backend.place import Place
from tests.task_files import write_task

REFUSED = [
    ({"agent": "nobody"}, "no agent 'nobody'"),
    ({"agent": "terminus-2"}, "needs a model"),
]


async def test_a_plan_is_what_would_be_submitted_and_starts_nothing(place: Place) -> None:
    request = place.request("b", "a", attempts=3)
    plan = await place.backend.runs.plan(request)
    assert [task.name for task in plan.tasks] == ["a", "b"]
    assert await place.backend.jobs.page(10, None) == []
    job = await place.backend.runs.submit(request)
    assert job.spec.model_copy(update={"sandbox": plan.spec.sandbox}) == plan.spec
    assert (job.spec.attempts, job.spec.origin, job.spec.sandbox) == (3, "seatrial", "oci")


async def test_a_selection_narrows(place: Place) -> None:
    request = place.request("one", "two", "three").model_copy(update={"selection": TaskSelection(include=("t*",))})
    job = await place.backend.runs.submit(request)
    assert sorted(task.name for task in job.spec.tasks) == ["three", "two"]


async def test_tasks_of_the_library_and_of_a_dataset(place: Place) -> None:
    tasks = [task for name in ("x", "y") for task in await place.backend.tasks.add(write_task(place.folder, name))]
    await place.backend.datasets.save("both", "1", tasks, "Two tasks.")
    agents = (AgentEntry(name="oracle"),)
    named = await place.backend.runs.submit(RunRequest(library=("y",), agents=agents))
    whole = await place.backend.runs.submit(RunRequest(dataset="both@1", agents=agents))
    assert [ref.name for ref in named.spec.tasks] == ["y"]
    assert [ref.name for ref in whole.spec.tasks] == ["x", "y"]
    assert (await place.backend.tasks.get("x")).digest == tasks[0].digest
    assert [item.name for item in await place.backend.tasks.all()] == ["x", "y"]
    assert [item.name for item in await place.backend.datasets.all()] == ["both"]
    assert (await place.backend.datasets.get("both", None)).tasks == whole.spec.tasks


async def test_a_dataset_is_asked_for_in_pages_and_not_task_by_task(place: Place) -> None:
    for index in range(30):
        write_task(place.folder / "many", f"t{index:02}")
    tasks = await place.backend.tasks.add(place.folder / "many")
    await place.backend.datasets.save("many", "1", tasks, "")
    request = RunRequest(dataset="many", agents=(AgentEntry(name="oracle"),))
    asked_before = len(place.requests)
    plan = await place.backend.runs.plan(request)
    assert list(plan.tasks) == sorted(tasks, key=lambda task: task.name)
    assert len(place.requests) - asked_before <= 6, place.requests[asked_before:]


async def test_of_two_tasks_with_one_name_the_last_one_is_meant(place: Place) -> None:
    """Whichever of the two digests is the larger one."""
    for solve in ("true", "echo other", "true"):
        (task,) = await place.backend.tasks.add(write_task(place.folder, "twice", solve=solve))
        await place.here.library.add(place.folder / "twice")  # used last, even where a service knew it already
        assert (await place.backend.tasks.get("twice")).digest == task.digest
        plan = await place.backend.runs.plan(RunRequest(library=("twice",)))
        assert [ref.digest for ref in plan.spec.tasks] == [task.digest]


@pytest.mark.parametrize(("wanted", "words"), REFUSED)
async def test_what_cannot_run_is_refused_before_anything_is_stored(
    place: Place, wanted: dict[str, str], words: str
) -> None:
    with pytest.raises(InvalidInput, match=words):
        await place.backend.runs.submit(place.request("a", **wanted))  # type: ignore[arg-type]
    assert await place.backend.jobs.page(10, None) == []


async def test_a_missing_key_is_refused(place: Place) -> None:
    with pytest.raises(MissingKey, match="OPENAI_API_KEY"):
        await place.backend.runs.submit(place.request("a", agent="terminus-2", model="openai/gpt-4o"))


@pytest.mark.parametrize("request_", [RunRequest(), RunRequest(library=("missing",)), RunRequest(dataset="missing")])
async def test_nothing_to_run_and_what_does_not_exist(place: Place, request_: RunRequest) -> None:
    for ask in (place.backend.runs.plan, place.backend.runs.submit):
        with pytest.raises(SeatrialError, match=r"Nothing to run|missing"):
            await ask(request_)


async def test_what_is_wrong_with_a_task_is_told(place: Place) -> None:
    folder = write_task(place.folder, "broken")
    (folder / "task.toml").write_text("this is no TOML =")
    [found] = await place.backend.tasks.inspect(folder)
    assert found.task is None and found.problems
    with pytest.raises(SeatrialError):
        await place.backend.tasks.add(folder)


async def test_a_run_that_is_refused_adds_nothing_to_the_library(place: Place) -> None:
    """Nor does a plan. The same request without its fault adds its tasks."""
    sound, broken = write_task(place.folder, "sound"), write_task(place.folder, "broken")
    (broken / "task.toml").write_text("this is no TOML =")
    unsolved = write_task(place.folder, "unsolved")
    shutil.rmtree(unsolved / "solution")
    for request in (
        RunRequest(paths=(sound,), agents=(AgentEntry(name="nobody"),)),
        RunRequest(paths=(sound,), agents=(AgentEntry(name="terminus-2", model="openai/gpt-4o"),)),
        RunRequest(paths=(sound,), sandbox="cellar"),
        RunRequest(paths=(sound, broken)),
        RunRequest(paths=(sound, unsolved)),
        RunRequest(paths=(sound,), library=("missing",)),
        RunRequest(paths=(sound,), selection=TaskSelection(include=("z*",))),
    ):
        with pytest.raises(SeatrialError):
            await place.backend.runs.submit(request)
        assert await place.backend.tasks.all() == [], request
    plan = await place.backend.runs.plan(RunRequest(paths=(sound,)))
    assert [task.name for task in plan.tasks] == ["sound"] and await place.backend.tasks.all() == []
    await place.backend.runs.submit(RunRequest(paths=(sound,)))
    assert [task.name for task in await place.backend.tasks.all()] == ["sound"]


async def test_a_key_of_a_task_that_nobody_knows_is_said(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_task(place.folder, "misspelt")
    (folder / "task.toml").write_text(
        (folder / "task.toml").read_text().replace("[agent]", "[agent]\ntimeout_secs = 5")
    )
    await place.backend.runs.submit(RunRequest(paths=(folder,)))
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("Note: misspelt/task.toml:") and "Did you mean 'timeout_sec'?" in line
    await place.backend.runs.submit(RunRequest(paths=(write_task(place.folder, "plain"),)))
    assert capsys.readouterr().err == ""


async def test_a_name_that_was_misspelt_is_answered_with_the_one_that_was_meant(place: Place) -> None:
    tasks = await place.backend.tasks.add(write_task(place.folder, "count-words"))
    await place.backend.datasets.save("nightly", "1", tasks, "")
    agent = (AgentEntry(name="orcale"),)
    for request, meant in (
        (RunRequest(library=("count-word",)), "count-words"),
        (RunRequest(dataset="nightli"), "nightly"),
        (RunRequest(paths=(place.folder / "count-wrods",)), "count-words"),
        (RunRequest(library=("count-words",), agents=agent), "oracle"),
    ):
        with pytest.raises(SeatrialError) as refused:
            await place.backend.runs.submit(request)
        assert f"Did you mean '{meant}'?" in str(refused.value)
    with pytest.raises(SeatrialError, match="Did you mean 'count-words'"):
        await place.backend.tasks.get("count_words")
    with pytest.raises(SeatrialError, match="Did you mean 'nightly'"):
        await place.backend.datasets.get("nigthly", None)
    with pytest.raises(SeatrialError, match="It has 1"):
        await place.backend.datasets.get("nightly", "2")
    with pytest.raises(SeatrialError) as unlike:
        await place.backend.tasks.get("zzz")
    assert "Did you mean" not in str(unlike.value)
