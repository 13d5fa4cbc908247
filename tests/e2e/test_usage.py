"""What cannot work is said at once, in one sentence that names it and the way out, with exit status 2."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.command_line import SAMPLES, CommandLine, Done
from tests.task_files import write_task

SAMPLE = str(SAMPLES / "answer-file")

REFUSED: tuple[tuple[tuple[str, ...], str], ...] = (
    ((), "Nothing to run. Give a task"),
    (("nowhere",), "There is no file or folder nowhere"),
    (("/proc/self",), "There is no task in /proc/self. A task has a task.toml"),
    (("/proc/self/exe",), "neither a ZIP nor a tar"),
    ((SAMPLE, "-a", "nobody"), "There is no agent 'nobody'. `seatrial agents` lists them"),
    ((SAMPLE, "-a", "no.such:Agent"), "Cannot find the module no.such"),
    ((SAMPLE, "-a", "terminus-2"), "Agent terminus-2 needs a model. Add -m"),
    ((SAMPLE, "-a", "terminus-2", "-m", "openai/gpt-4o"), "openai/gpt-4o needs a key and none is set."),
    ((SAMPLE, "-e", "cellar"), "There is no sandbox 'cellar'. Use auto, oci, docker"),
    ((SAMPLE, "-e", "harbor:cellar"), "There is no sandbox 'harbor:cellar'"),
    ((SAMPLE, "-i", "zzz*"), "None of 1 task is left after the filters. Loosen"),
    ((SAMPLE, "--ak", "colour"), "--ak 'colour' is not KEY=VALUE"),
    ((SAMPLE, "--ae", "=red"), "--ae '=red' is not KEY=VALUE"),
    (("-d", "nothing@1"), "There is no dataset nothing@1"),
    ((SAMPLE, "-c", "missing.yaml"), "The job file missing.yaml cannot be read"),
    ((SAMPLE, "-k", "0"), "-k"),
    ((SAMPLE, "--timeout-multiplier", "0"), "timeout_multiplier: Input should be greater than 0"),
    ((SAMPLE, "--timeout-multiplier", "inf"), "timeout_multiplier: Input should be a finite number"),
    ((SAMPLE, "--trial-limit", "-1"), "trial_limit_sec: Input should be greater than 0"),
    ((SAMPLE, "--colour"), "No such option"),
)
JOB_FILES: tuple[tuple[bytes, str], ...] = (
    (b"a: [1", "{file} is not valid YAML"),
    (b"\xd1\x00\xff", "{file} is not valid YAML"),
    (b"- oracle", "{file} must hold a mapping"),
    (b"atempts: 2", "atempts in {file}: Unknown field"),
    (b"attempts: many", "attempts in {file}: Input should be a valid integer"),
    (b"datasets: 5", "datasets in {file}: must be a list"),
    (b"datasets: [a, b]", "{file} names several datasets. Run one job per dataset"),
    (b"agents: [{model: x}]", "agents.0.name in {file}: Field required"),
)
MISSING: tuple[tuple[str, ...], ...] = (
    ("job", "show", "9"),
    ("job", "cancel", "9"),
    ("job", "delete", "9"),
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


def unexpected(answers: Sequence[Done], sentences: Sequence[str]) -> list[Done]:
    """The answers that are not exit status 2 with the sentence on standard error and nothing else."""
    return [
        done
        for done, sentence in zip(answers, sentences, strict=True)
        if done.status != 2 or done.out or sentence not in done.err or "Traceback" in done.err
    ]


def test_what_cannot_work_is_refused_in_a_sentence(cli: CommandLine, tmp_path: Path) -> None:
    assert cli.json("job", "list") == []
    for number, (content, _) in enumerate(JOB_FILES):
        (tmp_path / f"{number}.yaml").write_bytes(content)
    runs = [("run", *arguments) for arguments, _ in REFUSED]
    files = [("run", SAMPLE, "-c", f"{number}.yaml") for number in range(len(JOB_FILES))]
    answers = cli.each([*runs, *files, *MISSING])
    sentences = [sentence for _, sentence in REFUSED]
    sentences += [sentence.format(file=f"{number}.yaml") for number, (_, sentence) in enumerate(JOB_FILES)]
    sentences += ["seatrial: There is no "] * len(MISSING)
    assert unexpected(answers, sentences) == []
    assert cli.count() == 0


def test_the_key_is_asked_for_once_and_never_needed_twice(cli: CommandLine) -> None:
    """With the key set, or with the model's own address, the same job is accepted. The key is not shown."""
    run = ("run", SAMPLE, "-a", "terminus-2", "-m", "openai/gpt-4o", "--dry-run")
    assert said(cli, *run).strip().endswith("Set OPENAI_API_KEY.")
    assert len(said(cli, *run).splitlines()) == 1
    accepted = cli(*run, OPENAI_API_KEY="sk-canary-1234")
    assert "1 trial:" in accepted.out
    assert "canary" not in accepted.out + accepted.err
    assert "1 trial:" in cli(*run, "--ak", "api_base=http://127.0.0.1:9/v1").out


def test_wrong_settings_are_named(cli: CommandLine, tmp_path: Path) -> None:
    assert "SEATRIAL_LEASE_SEC is 'soon'" in said(cli, "job", "list", SEATRIAL_LEASE_SEC="soon")
    (tmp_path / "seatrial.toml").write_text("not toml")
    assert "The settings cannot be read" in said(cli, "doctor")
    (tmp_path / "seatrial.toml").unlink()
    (tmp_path / "file").write_text("")
    refused = cli("job", "list", status=1, SEATRIAL_HOME=str(tmp_path / "file" / "home"))
    assert "Set SEATRIAL_HOME to a folder that can be written" in refused.err
    assert "No jobs" in cli("job", "list").out


def test_every_problem_of_broken_tasks_is_listed_with_its_place(cli: CommandLine, tmp_path: Path) -> None:
    empty, wrong = write_task(tmp_path / "bad", "empty"), write_task(tmp_path / "bad", "wrong")
    (empty / "instruction.md").unlink()
    (empty / "tests" / "test.sh").unlink()
    text = (wrong / "task.toml").read_text()
    (wrong / "task.toml").write_text(text.replace("timeout_sec = 300.0", 'timeout_sec = "soon"'))
    done = cli("task", "add", tmp_path / "bad", "--check", status=2)
    assert "empty: invalid\n  error: instruction.md: is missing. Fix: " in done.out
    assert "error: tests/test.sh: is missing. Fix: " in done.out
    assert "wrong: invalid\n  error: task.toml:9: agent.timeout_sec" in done.out
    assert "error: task.toml:11: verifier.timeout_sec" in done.out
    inspections = cli.json("task", "add", tmp_path / "bad", "--check", status=2)
    assert [len(inspection["problems"]) for inspection in inspections] == [2, 2]
    refused = said(cli, "run", str(tmp_path / "bad"))
    assert "'empty' has 2 problems" in refused
    assert "'wrong' has 2 problems" in refused
    sound = write_task(tmp_path, "sound")
    assert cli("task", "add", sound, "--check").out == "sound: valid\n"
    refused = cli("task", "add", sound, tmp_path / "bad", status=2).out
    assert refused.startswith("sound: valid, not added\n") and "empty: rejected\n" in refused
    assert cli.json("task", "list") == []
    assert cli("task", "add", sound).out == "sound: added\n"
    assert cli("task", "add", sound).out == "sound: already in library\n"
