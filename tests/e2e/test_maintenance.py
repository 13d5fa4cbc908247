"""Keeping an installation: doctor, catalogue, images, retention, backup."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command_line import SAMPLES, CommandLine


@pytest.mark.sandbox
def test_the_doctor_says_what_works(cli: CommandLine) -> None:
    health = cli.json("doctor")
    assert health["automatic"] == "oci"
    rooms = {room["name"]: room for room in health["kinds"]}
    assert {"oci", "docker"} <= set(rooms)
    assert all(finding["ok"] for finding in rooms["oci"]["findings"] if finding["needed"])
    told = cli("doctor").out
    assert "oci: works" in told
    assert "--sandbox auto means: oci" in told


def test_agents_and_models_are_listed(cli: CommandLine) -> None:
    agents = {agent["name"]: agent for agent in cli.json("agents")}
    assert {"oracle", "nop", "terminus-2", "mini-swe-agent"} <= set(agents)
    assert agents["terminus-2"]["needs_model"] and not agents["oracle"]["needs_model"]
    listed = cli("agents").out
    assert "terminus-2" in listed and "ANTHROPIC_API_KEY" in listed
    assert "kit" in agents["codex"] and "kit" not in agents["terminus-2"], "which agents have kits is said"
    assert agents["codex"]["formats"] == ["responses"] and agents["codex"]["proven"][0]["format"] == "responses"
    models = {model["id"]: model["keys"] for model in cli.json("models")}
    assert models["openai/gpt-4o"] == ["OPENAI_API_KEY"]
    assert models["scripted/shell"] == []
    assert "openrouter/" in cli("models").out


def test_an_ended_job_is_deleted_once_that_was_confirmed(cli: CommandLine) -> None:
    cli("run", SAMPLES / "answer-file", "--queue-only")
    assert "seatrial job cancel 1" in cli("job", "delete", "1", "--yes", status=1).err, "it has not ended"
    cli("job", "cancel", "1")
    asked = cli("job", "delete", "1", status=1)
    assert "Delete job 1" in asked.out and "Aborted" in asked.err, "nobody is there to answer"
    assert cli.json("job", "show", "1")["cancelled"] == 1
    assert "deleted with 1 trial" in cli("job", "delete", "1", "--yes").out
    cli("job", "show", "1", status=2)
    assert cli.json("task", "list"), "its tasks stay"


@pytest.mark.sandbox
def test_old_files_go_and_results_stay(cli: CommandLine) -> None:
    cli("run", SAMPLES / "answer-file")
    assert "0 files of 0 trials" in cli("gc").out, "nothing is old enough"
    assert "of 1 trial," in cli("gc", "--keep-days", "0", "--dry-run").out
    assert cli("trial", "files", "1", "verifier/reward.txt").out == "1\n"
    assert "of 1 trial," in cli("gc", "--keep-days", "0").out
    cli("trial", "files", "1", "verifier/reward.txt", status=2)
    assert cli.json("trial", "show", "1")["result"]["rewards"] == {"reward": 1.0}
    assert cli.json("job", "show", "1")["passed"] == 1
    digest = cli.json("trial", "show", "1")["result"]["lock"]["image_digest"]
    assert digest in {image["digest"] for image in cli.json("images", "list")}


def test_a_backup_brings_everything_back(cli: CommandLine, tmp_path: Path) -> None:
    cli("task", "add", SAMPLES / "answer-file")
    assert "up to date" in cli("db", "upgrade").out
    backup = tmp_path / "backup.db"
    assert "bytes" in cli("db", "backup", backup).out
    assert "exists" in cli("db", "backup", backup, status=1).err
    cli("task", "add", SAMPLES / "tidy-the-list")
    assert "Add --force" in cli("db", "restore", backup, status=1).err
    assert len(cli.json("task", "list")) == 2
    restored = cli("db", "restore", backup, "--force")
    assert "The former database is" in restored.out
    assert [task["name"] for task in cli.json("task", "list")] == ["answer-file"]
    former = Path(restored.out.strip().rpartition(" ")[2].rstrip("."))
    cli("db", "restore", former, "--force")
    assert len(cli.json("task", "list")) == 2
    cli("db", "restore", tmp_path / "nothing.db", status=2)
    (tmp_path / "broken.db").write_text("not a database")
    assert "cannot be used" in cli("db", "restore", tmp_path / "broken.db", "--force", status=2).err
