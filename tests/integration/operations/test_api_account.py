"""``seatrial up`` of root: the API's process has an account of its own, and everything works as before."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from seatrial.api_account import _obstacle
from seatrial.sandboxes.selection import engine_listens
from seatrial.settings import Settings
from seatrial.system.file_owner import NOBODYS_ID, Account, act_as
from tests.command_line import CommandLine
from tests.host_processes import status_of
from tests.running_service import RunningService, service_up
from tests.task_files import write_task
from tests.waiting import until

pytestmark = pytest.mark.sandbox

ACCOUNT = Account(NOBODYS_ID, NOBODYS_ID)


def owners(folder: Path) -> set[int]:
    return {path.lstat().st_uid for path in (folder, *folder.rglob("*"))}


def uid(service: RunningService) -> str:
    return status_of(service.api)["Uid"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Below a folder of root that nobody else may pass."""
    (place := tmp_path_factory.mktemp("account") / "closed").mkdir(mode=0o700)
    (place / "beside").write_text("root's own")
    return place


@pytest.fixture(scope="module")
def machine(place: Path, image_cache: Path) -> Iterator[CommandLine]:
    """A home as root left it, with one job."""
    with CommandLine(place / "home", image_cache, place) as cli:
        cli("run", write_task(place, "first"), "--sandbox", "oci", SEATRIAL_API_USER="root")
        assert owners(cli.home) == {0}
        yield cli


@pytest.fixture(scope="module")
def service(machine: CommandLine) -> Iterator[RunningService]:
    with service_up(machine, "--workers", "1") as running:
        running.until_ready()
        yield running


def test_the_api_is_not_root(service: RunningService) -> None:
    assert uid(service).split() == [str(NOBODYS_ID)] * 4
    assert status_of(service.api)["Groups"] == ""


def test_an_old_home_is_taken_over_with_its_results(service: RunningService, machine: CommandLine) -> None:
    assert owners(machine.home) == {NOBODYS_ID}
    with service.client() as client:
        [file] = [f for f in client.get("/api/v1/trials/1/files").json()["items"] if f["path"] == "result.json"]
        assert len(client.get("/api/v1/trials/1/files/result.json").content) == file["size"]


def test_jobs_of_the_service_and_of_root_run_and_can_be_removed(service: RunningService, machine: CommandLine) -> None:
    with service.client() as client:
        task = client.get("/api/v1/tasks").json()["items"][0]["digest"]
        job = client.post("/api/v1/jobs", json={"tasks": [task]}).raise_for_status().json()["id"]
        until(lambda: client.get(f"/api/v1/jobs/{job}").json()["ended_at"] is not None, "the job's end", 200)
        assert client.get(f"/api/v1/jobs/{job}").json()["counts"]["passed"] == 1
        assert client.get(f"/api/v1/tasks/{task}/files").status_code == 200
        machine("run", machine.directory / "first", "--sandbox", "oci")
        assert owners(machine.home) == {NOBODYS_ID}
        client.delete(f"/api/v1/jobs/{job}").raise_for_status()
        client.delete(f"/api/v1/jobs/{job + 1}").raise_for_status()
        assert [path.name for path in (machine.home / "blobs" / "trials").iterdir()] == ["1"]
    assert "1 file" not in machine("gc", "--keep-days", "0").out
    assert not (machine.home / "blobs" / "trials").exists()


def test_the_api_sees_only_its_home_below_a_closed_folder(service: RunningService, place: Path) -> None:
    assert sorted(path.name for path in Path(f"/proc/{service.api}/root{place}").iterdir()) == ["home"]
    assert (place / "beside").read_text() == "root's own"


def test_the_account_writes_its_home_and_not_what_workers_keep(service: RunningService, machine: CommandLine) -> None:
    settings = Settings(home=machine.home, cache=machine.cache)
    assert not settings.work_dir.is_relative_to(machine.home) and settings.tasks_dir.is_dir()
    folder = os.open(machine.home, os.O_RDONLY)
    with ThreadPoolExecutor(1, initializer=act_as, initargs=(ACCOUNT,)) as api:
        api.submit(os.mkdir, "own", dir_fd=folder).result()
        api.submit(os.rmdir, "own", dir_fd=folder).result()
        for path in (settings.tasks_dir / "x", settings.cache / "x", settings.cache / "images" / "x"):
            with pytest.raises(PermissionError):
                api.submit(path.mkdir).result()
    os.close(folder)


def test_the_same_home_is_served_again_and_root_may_be_kept(place: Path, image_cache: Path) -> None:
    with CommandLine(place / "second", image_cache, place) as cli:
        for user, expected in (("", NOBODYS_ID), ("", NOBODYS_ID), ("root", 0), ("4242", 4242)):
            with service_up(cli, "--workers", "0", SEATRIAL_API_USER=user) as running:
                assert uid(running).split()[0] == str(expected)
                with running.client() as client:
                    client.post("/api/v1/samples").raise_for_status()
        assert owners(cli.home) == {4242}
        refused = cli("up", "--port", "0", "--workers", "0", status=1, SEATRIAL_API_USER="nobody-knows-him")
        assert "nobody-knows-him" in refused.err


@pytest.mark.parametrize("user", ["", "60999"])
def test_doctor_says_who_the_api_is(cli: CommandLine, user: str) -> None:
    assert f"API process: user {NOBODYS_ID}" in cli("doctor", SEATRIAL_API_USER=user).out
    kept = cli("doctor", SEATRIAL_API_USER="root").out
    assert "API process: user 0" in kept and "could be dropped further" in kept


def test_a_home_that_cannot_be_given_is_told(tmp_path: Path) -> None:
    """Then root is kept, or the service does not start if the operator named the account."""
    (tmp_path / "store").mkdir()
    inside = Settings(home=tmp_path, cache=tmp_path / "cache")
    assert "SEATRIAL_CACHE" in _obstacle(inside, ACCOUNT)
    elsewhere = Settings(home=tmp_path / "home", cache=tmp_path / "cache", blobs_url=f"file://{tmp_path}/store")
    assert "chown" in _obstacle(elsewhere, ACCOUNT)
    assert _obstacle(Settings(home=tmp_path / "home", cache=tmp_path / "cache"), ACCOUNT) == ""


def test_an_engine_that_only_workers_may_use_counts_when_a_job_is_checked(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as engine, ThreadPoolExecutor(1, initializer=act_as, initargs=(ACCOUNT,)) as api:
        engine.bind(str(tmp_path / "engine"))
        engine.listen()
        address = f"unix://{tmp_path}/engine"
        assert engine_listens(address) and not api.submit(engine_listens, address).result()
        assert api.submit(engine_listens, address, for_others=True).result()
