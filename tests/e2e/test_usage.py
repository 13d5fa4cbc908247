"""What cannot work is said at once, in one sentence that names it and the way out, with exit status 2."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command_line import SAMPLES, CommandLine
from tests.task_files import write_task

SAMPLE = str(SAMPLES / "answer-file")

REFUSED: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("nothing", (), "Nothing to run. Name a task"),
    ("no such path", ("nowhere",), "There is no file or folder nowhere"),
    ("not a task", ("/proc/self",), "neither task.toml nor task.yaml"),
    ("not an archive", ("/proc/self/exe",), "neither a ZIP nor a tar"),
    ("unknown agent", (SAMPLE, "-a", "nobody"), "There is no agent 'nobody'. `seatrial agents` lists them"),
    ("missing module", (SAMPLE, "-a", "no.such:Agent"), "There is no module no.such"),
    ("missing model", (SAMPLE, "-a", "terminus-2"), "Agent terminus-2 needs a model. Add -m"),
    ("missing key", (SAMPLE, "-a", "terminus-2", "-m", "openai/gpt-4o"), "openai/gpt-4o needs a key and none is set."),
    ("unknown sandbox", (SAMPLE, "-e", "cellar"), "There is no sandbox 'cellar'. Use auto, oci, docker"),
    ("unknown environment", (SAMPLE, "-e", "harbor:cellar"), "There is no sandbox 'harbor:cellar'"),
    ("nothing left", (SAMPLE, "-i", "zzz*"), "None of 1 task(s) is left after the filters. Loosen"),
    ("option without value", (SAMPLE, "--ak", "colour"), "--ak 'colour' is not KEY=VALUE"),
    ("variable without name", (SAMPLE, "--ae", "=red"), "--ae '=red' is not KEY=VALUE"),
    ("unknown dataset", ("-d", "nothing@1"), "There is no dataset nothing@1"),
    ("missing job file", (SAMPLE, "-c", "missing.yaml"), "The job file missing.yaml cannot be read"),
    ("no attempts", (SAMPLE, "-k", "0"), "-k"),
    ("no time", (SAMPLE, "--timeout-multiplier", "0"), "timeout_multiplier: Input should be greater than 0"),
    ("endless time", (SAMPLE, "--timeout-multiplier", "inf"), "timeout_multiplier: Input should be a finite number"),
    ("negative limit", (SAMPLE, "--trial-limit", "-1"), "trial_limit_sec: Input should be greater than 0"),
    ("unknown flag", (SAMPLE, "--colour"), "No such option"),
)
JOB_FILES: tuple[tuple[str, bytes, str], ...] = (
    ("not yaml", b"a: [1", "is not valid YAML"),
    ("not text", b"\xd1\x00\xff", "is not valid YAML"),
    ("not a mapping", b"- oracle", "must hold a mapping"),
    ("unknown field", b"atempts: 2", "atempts in job.yaml: There is no such field"),
    ("wrong type", b"attempts: many", "attempts in job.yaml: Input should be a valid integer"),
    ("wrong list", b"datasets: 5", "datasets in job.yaml: must be a list"),
    ("two datasets", b"datasets: [a, b]", "names several datasets. Run one job for each"),
    ("agent without name", b"agents: [{model: x}]", "agents.0.name in job.yaml: Field required"),
)
MISSING: tuple[tuple[str, ...], ...] = (
    ("job", "show", "9"),
    ("job", "cancel", "9"),
    ("job", "resume", "9"),
    ("job", "retry", "9"),
    ("trial", "show", "9"),
    ("trial", "logs", "9"),
    ("trial", "files", "9"),
    ("task", "show", "nothing"),
    ("dataset", "show", "nothing"),
    ("report", "9"),
    ("compare", "9", "8"),
)


def said(cli: CommandLine, *arguments: str, **environment: str) -> str:
    """The sentence on standard error; standard output stays empty."""
    done = cli(*arguments, status=2, **environment)
    assert done.out == ""
    return done.err


@pytest.mark.parametrize(("arguments", "sentence"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_a_run_that_cannot_work_is_refused(cli: CommandLine, arguments: tuple[str, ...], sentence: str) -> None:
    assert sentence in said(cli, "run", *arguments)
    assert cli.count() == 0


@pytest.mark.parametrize(("content", "sentence"), [case[1:] for case in JOB_FILES], ids=[case[0] for case in JOB_FILES])
def test_a_broken_job_file_is_refused(cli: CommandLine, tmp_path: Path, content: bytes, sentence: str) -> None:
    (tmp_path / "job.yaml").write_bytes(content)
    assert sentence in said(cli, "run", SAMPLE, "-c", "job.yaml")


def test_what_does_not_exist_is_named(cli: CommandLine) -> None:
    for arguments in MISSING:
        assert said(cli, *arguments).startswith("seatrial: There is no ")


def test_the_key_is_asked_for_once_and_never_needed_twice(cli: CommandLine) -> None:
    """With the key set, or with the model's own address, the same job is accepted. The key is not shown."""
    run = ("run", SAMPLE, "-a", "terminus-2", "-m", "openai/gpt-4o", "--dry-run")
    assert said(cli, *run).strip().endswith("Set OPENAI_API_KEY.")
    assert len(said(cli, *run).splitlines()) == 1
    accepted = cli(*run, OPENAI_API_KEY="sk-canary-1234")
    assert "1 trial(s)" in accepted.out
    assert "canary" not in accepted.out + accepted.err
    assert "1 trial(s)" in cli(*run, "--ak", "api_base=http://127.0.0.1:9/v1").out


def test_wrong_settings_are_named(cli: CommandLine, tmp_path: Path) -> None:
    assert "SEATRIAL_LEASE_SEC is 'soon'" in said(cli, "job", "list", SEATRIAL_LEASE_SEC="soon")
    (tmp_path / "seatrial.toml").write_text("not toml")
    assert "The settings cannot be read" in said(cli, "doctor")
    (tmp_path / "seatrial.toml").unlink()
    (tmp_path / "file").write_text("")
    refused = cli("job", "list", status=1, SEATRIAL_HOME=str(tmp_path / "file" / "home"))
    assert "Set SEATRIAL_HOME to a folder that can be written" in refused.err
    assert "No job yet" in cli("job", "list").out


def test_every_problem_of_a_broken_task_is_listed_with_its_place(cli: CommandLine, tmp_path: Path) -> None:
    broken = write_task(tmp_path, "broken")
    (broken / "instruction.md").unlink()
    (broken / "tests" / "test.sh").unlink()
    text = (broken / "task.toml").read_text()
    (broken / "task.toml").write_text(text.replace("timeout_sec = 60.0", 'timeout_sec = "soon"', 1))
    done = cli("task", "add", broken, "--check", status=2)
    assert "broken: INVALID" in done.out
    assert "task.toml:9" in done.out
    assert "instruction.md" in done.out
    assert "tests/test.sh" in done.out
    [inspection] = cli.json("task", "add", broken, "--check", status=2)
    assert len(inspection["problems"]) >= 3
    assert "broken" in said(cli, "run", broken)
    sound = write_task(tmp_path, "sound")
    assert "sound: valid" in cli("task", "add", sound, "--check").out
    assert cli.json("task", "list") == []
