"""Tasks over HTTP: taken in, checked, looked at, forgotten."""

from __future__ import annotations

import io
import zipfile

from tests.integration.api.service import Api, archive_of

UNKNOWN = "sha256:" + "0" * 64


async def test_uploads_many_archives_and_finds_them(api: Api) -> None:
    first, second = await api.add_tasks("one", "two")
    listed = await api.get("/tasks")
    assert [item["name"] for item in listed["items"]] == ["one", "two"]
    assert listed["next"] is None
    assert (await api.get(f"/tasks/{first}"))["instruction"].startswith("Write 42")
    assert [item["digest"] for item in (await api.get("/tasks", params={"q": "TWO"}))["items"]] == [second]
    assert (await api.get("/tasks", params={"category": "other"}))["items"] == []
    assert len((await api.get("/tasks", params={"tag": "small", "difficulty": "easy"}))["items"]) == 2


async def test_pages_follow_each_other_without_gaps(api: Api) -> None:
    await api.add_tasks(*"abcde")
    seen, cursor = [], None
    while True:
        params = {"limit": 2} | ({"cursor": cursor} if cursor else {})
        page = await api.get("/tasks", params=params)
        seen += [item["name"] for item in page["items"]]
        cursor = page["next"]
        if cursor is None:
            break
    assert seen == list("abcde")


async def test_a_broken_archive_loses_nothing_of_the_others(local_api: Api) -> None:
    good = archive_of(local_api.folder, "good")
    files = [("files", ("bad.zip", b"not an archive")), ("files", ("good.zip", good))]
    taken = (await local_api.post("/tasks", status=201, files=files))["items"]
    assert [(item["filename"], len(item["tasks"])) for item in taken] == [("bad.zip", 0), ("good.zip", 1)]
    assert taken[0]["error"]["code"] == "invalid_archive"
    assert taken[1]["error"] is None


async def test_says_file_line_and_fix_when_nothing_can_be_taken(local_api: Api) -> None:
    broken = archive_of(local_api.folder, "broken", more="cpus = 'many'")
    answer = await local_api.post("/tasks", status=422, files=[("files", ("broken.zip", broken))])
    problem = answer["error"]
    assert problem["field"] == "files"
    assert problem["problems"][0]["file"].endswith("task.toml")
    assert problem["problems"][0]["line"]
    assert str(local_api.folder) not in problem["message"]
    assert "/tmp" not in problem["message"]
    assert (await local_api.get("/tasks"))["items"] == []


async def test_validation_keeps_nothing(local_api: Api) -> None:
    good, broken = archive_of(local_api.folder, "good"), archive_of(local_api.folder, "bad", more="nonsense = [")
    files = [("files", ("good.zip", good)), ("files", ("bad.zip", broken)), ("files", ("x.zip", b"x"))]
    checked = (await local_api.post("/tasks/validate", files=files))["items"]
    assert [[found["valid"] for found in item["inspections"]] for item in checked] == [[True], [False], []]
    assert checked[2]["error"]["code"] == "invalid_archive"
    assert (await local_api.get("/tasks"))["items"] == []


async def test_an_upload_over_the_limit_is_refused(local_api: Api) -> None:
    limit = local_api.installation.settings.upload_limit_mb << 20
    answer = await local_api.ask("POST", "/tasks", 413, headers={"Content-Length": str(limit + 1)}, content=b"")
    assert answer.json()["error"]["code"] == "too_large"


async def test_files_and_archive_of_a_task(local_api: Api) -> None:
    [digest] = await local_api.add_tasks("one")
    listed = (await local_api.get(f"/tasks/{digest}/files"))["items"]
    assert "tests/test.sh" in [item["path"] for item in listed]
    answer = await local_api.ask("GET", f"/tasks/{digest}/files/solution/solve.sh", 200)
    assert answer.text.startswith("#!/bin/bash")
    assert answer.headers["content-type"].startswith("text/plain")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in answer.headers["content-security-policy"]
    part = await local_api.ask("GET", f"/tasks/{digest}/files/solution/solve.sh", 206, headers={"Range": "bytes=2-5"})
    assert part.text == "/bin"
    archive = await local_api.ask("GET", f"/tasks/{digest}/archive", 200)
    assert archive.headers["content-disposition"].startswith("attachment")
    with zipfile.ZipFile(io.BytesIO(archive.content)) as content:
        assert any(name.endswith("task.toml") for name in content.namelist())


async def test_no_spelling_of_a_path_leads_out_of_a_task(local_api: Api) -> None:
    [digest] = await local_api.add_tasks("one")
    for path in ("../ready", "%2e%2e/ready", "..%2fready", "/etc/passwd", "%2fetc%2fpasswd", "tests/../task.toml/x"):
        await local_api.ask("GET", f"/tasks/{digest}/files/{path}", 404)
    await local_api.ask("GET", f"/tasks/{digest}/files/task.toml", 200)


async def test_a_task_in_use_stays(api: Api) -> None:
    [digest] = await api.add_tasks("one")
    job = await api.post("/jobs", {"tasks": [digest]}, status=201)
    answer = await api.ask("DELETE", f"/tasks/{digest}", 409)
    assert answer.json()["error"]["code"] == "conflict"
    await api.post(f"/jobs/{job['id']}/cancel")
    await api.ask("DELETE", f"/tasks/{digest}", 204)
    await api.get(f"/tasks/{digest}", 404)
    assert [blob async for blob in api.installation.blobs.list("tasks")] == []
    [again] = await api.add_tasks("one")
    assert again == digest
    assert (await api.get(f"/tasks/{digest}/files"))["items"]


async def test_unknown_tasks_and_digests_that_are_none(local_api: Api) -> None:
    assert (await local_api.get(f"/tasks/{UNKNOWN}", 404))["error"]["code"] == "not_found"
    await local_api.ask("DELETE", f"/tasks/{UNKNOWN}", 404)
    assert (await local_api.get("/tasks/hello", 422))["error"]["field"] == "digest"


async def test_samples_are_there_to_be_tried(local_api: Api) -> None:
    first = await local_api.post("/samples", status=201)
    assert "answer-file" in " ".join(item["name"] for item in first["items"])
    assert await local_api.post("/samples", status=201) == first


async def test_datasets_are_written_once(api: Api) -> None:
    one, two = await api.add_tasks("one", "two")
    made = await api.post("/datasets", {"name": "pair", "tasks": [one, "two"]}, status=201)
    assert [task["digest"] for task in made["tasks"]] == [one, two]
    assert await api.post("/datasets", {"name": "pair", "tasks": [one, two]}, status=201) == made
    await api.post("/datasets", {"name": "pair", "tasks": [one]}, status=409)
    chosen = {"name": "pair", "version": "2", "selection": {"include": ["one"]}}
    assert len((await api.post("/datasets", chosen, status=201))["tasks"]) == 1
    assert (await api.get("/datasets/pair"))["version"] == "2"
    assert len((await api.get("/datasets/pair", params={"version": "1"}))["tasks"]) == 2
    assert len((await api.get("/datasets"))["items"]) == 2
    await api.get("/datasets/other", 404)
    nothing = await api.post("/datasets", {"name": "none", "tasks": ["three"]}, status=422)
    assert nothing["error"]["field"] == "tasks"


async def test_tasks_of_a_dataset_come_in_pages(api: Api) -> None:
    digests = await api.add_tasks("one", "two", "six")
    await api.post("/datasets", {"name": "all", "tasks": digests}, status=201)
    listed = [task["digest"] for task in (await api.get("/datasets/all"))["tasks"]]
    first = await api.get("/datasets/all/tasks", params={"version": "1", "limit": 2})
    rest = await api.get("/datasets/all/tasks", params={"version": "1", "limit": 2, "cursor": first["next"]})
    assert [task["digest"] for task in first["items"] + rest["items"]] == listed
    assert rest["next"] is None
    assert first["items"][0] == await api.get(f"/tasks/{listed[0]}")
    past = await api.get("/datasets/all/tasks", params={"cursor": str(2**63 - 1)})
    assert past == {"items": [], "next": None}
    await api.get("/datasets/all/tasks", 422, params={"cursor": "first"})
    await api.get("/datasets/all/tasks", 404, params={"version": "2"})
    await api.get("/datasets/other/tasks", 404)
