"""Datasets from registry files in Harbor's format: local tasks, tasks in Git repositories, and files that lie."""

from __future__ import annotations

import http.server
import json
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from seatrial.adapters.registry_harbor import load_registry, open_dataset
from seatrial.errors import InvalidInput, NotFound

SAMPLES = Path(__file__).parents[3] / "samples"


def write(path: Path, *datasets: dict[str, Any]) -> str:
    path.write_text(json.dumps(list(datasets)))
    return str(path)


def dataset(name: str = "samples", version: str = "1.0", **task: Any) -> dict[str, Any]:
    entry = {"name": "answer-file", "path": str(SAMPLES / "answer-file"), **task}
    return {"name": name, "version": version, "description": "Ours.", "tasks": [entry], "metrics": [{"type": "mean"}]}


@pytest.fixture
def repository(tmp_path: Path) -> Iterator[tuple[str, str]]:
    """A Git repository with two samples and something else, and its commit."""
    root = tmp_path / "repository"
    (root / "tasks").mkdir(parents=True)
    for name in ("answer-file", "keep-serving"):
        subprocess.run(["cp", "-r", str(SAMPLES / name), str(root / "tasks")], check=True)
    (root / "unrelated").write_text("x")

    def git(*words: str) -> str:
        options = ["-c", "user.name=x", "-c", "user.email=x@x.invalid", "-c", "init.defaultBranch=main"]
        done = subprocess.run(["git", *options, *words], cwd=root, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    git("init", "-q")
    git("add", "-A")
    git("commit", "-qm", "x")
    git("config", "uploadpack.allowFilter", "true")
    git("config", "uploadpack.allowAnySHA1InWant", "true")
    yield f"file://{root}", git("rev-parse", "HEAD")


async def test_paths_are_relative_to_the_registry_file(tmp_path: Path) -> None:
    (tmp_path / "here").symlink_to(SAMPLES)
    source = write(tmp_path / "registry.json", dataset(path="here/answer-file"))
    async with open_dataset(source, "samples") as found:
        assert (found.name, found.version, found.description) == ("samples", "1.0", "Ours.")
        assert [path.resolve() for path in found.paths] == [(SAMPLES / "answer-file").resolve()]


async def test_versions_are_chosen_as_harbor_does(tmp_path: Path) -> None:
    versions = [dataset(version=version) for version in ("1.9", "1.10", "beta")]
    registry = await load_registry(write(tmp_path / "r.json", *versions))
    assert registry.find("samples").version == "1.10"
    assert registry.find("samples", "1.9").version == "1.9"
    registry = await load_registry(write(tmp_path / "r.json", *versions, dataset(version="head")))
    assert registry.find("samples").version == "head"


async def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    source = write(tmp_path / "r.json", dataset())
    registry = await load_registry(source)
    with pytest.raises(NotFound, match="It has: samples"):
        registry.find("other")
    with pytest.raises(NotFound, match=r"It has: 1\.0"):
        registry.find("samples", "2.0")
    with pytest.raises(NotFound, match="no registry file"):
        await load_registry(str(tmp_path / "nowhere.json"))
    missing = write(tmp_path / "r.json", dataset(path="nowhere"))
    with pytest.raises(NotFound, match="no task 'answer-file'"):
        async with open_dataset(missing, "samples"):
            pass


@pytest.mark.parametrize(
    "text", ["{}", "[1]", "[{}]", '[{"name": "x", "version": "1", "tasks": [{"name": "y"}]}]', "no"]
)
async def test_a_file_that_is_no_registry_is_said_to_be_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "r.json").write_text(text)
    with pytest.raises(InvalidInput, match="not a registry file"):
        await load_registry(str(tmp_path / "r.json"))


async def test_tasks_come_from_a_git_repository_at_a_commit(tmp_path: Path, repository: tuple[str, str]) -> None:
    url, commit = repository
    source = write(tmp_path / "r.json", dataset(path="tasks/answer-file", git_url=url, git_commit_id=commit))
    async with open_dataset(source, "samples") as found:
        (folder,) = found.paths
        assert (folder / "task.toml").read_text() == (SAMPLES / "answer-file" / "task.toml").read_text()
        assert not (folder.parents[1] / "unrelated").exists()
    assert not folder.exists()


async def test_an_unreachable_repository_is_named(tmp_path: Path) -> None:
    source = write(tmp_path / "r.json", dataset(path="x", git_url=f"file://{tmp_path}/nowhere", git_commit_id="HEAD"))
    with pytest.raises(NotFound, match="could not be fetched"):
        async with open_dataset(source, "samples"):
            pass


@pytest.mark.parametrize(
    "task",
    [
        {"git_url": "ext::sh -c 'touch {place}/owned'", "path": "x"},
        {"git_url": "--upload-pack=touch {place}/owned", "path": "x"},
        {"git_url": "file://{place}", "git_commit_id": "--upload-pack=touch {place}/owned", "path": "x"},
        {"git_url": "file://{place}", "path": "../../etc"},
        {"git_url": "file://{place}", "path": "/etc"},
    ],
)
async def test_a_hostile_registry_runs_nothing(tmp_path: Path, task: dict[str, str]) -> None:
    filled = {key: value.replace("{place}", str(tmp_path)) for key, value in task.items()}
    source = write(tmp_path / "r.json", dataset(**filled))
    with pytest.raises(InvalidInput):
        async with open_dataset(source, "samples"):
            pass
    assert not (tmp_path / "owned").exists()


async def test_a_registry_behind_a_url(tmp_path: Path, repository: tuple[str, str]) -> None:
    url, commit = repository
    remote = dataset("remote", path="tasks/keep-serving", git_url=url, git_commit_id=commit)
    write(tmp_path / "registry.json", remote, dataset("local"))

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args, directory=str(tmp_path))

        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        source = f"http://127.0.0.1:{server.server_port}"
        async with open_dataset(f"{source}/registry.json", "remote") as found:
            assert (found.paths[0] / "task.toml").is_file()
        with pytest.raises(InvalidInput, match="no git_url"):
            async with open_dataset(f"{source}/registry.json", "local"):
                pass
        with pytest.raises(NotFound, match="could not be read"):
            await load_registry(f"{source}/nowhere.json")
    finally:
        server.shutdown()
        server.server_close()
