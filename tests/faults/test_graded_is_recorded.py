"""Once there is a grade it is recorded, whatever the attempt left behind: whole trials whose files are hostile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.command_line import CommandLine
from tests.task_files import SOLVE, TEST, write_task

pytestmark = pytest.mark.sandbox

_DEEP = "chdir '/logs/agent'; for (1 .. 30) { $n = 'd' x 200; mkdir $n; chdir $n } open F, '>', 'end'"

LEFT_BY_AGENT = {
    "benign": "print 'fine'",
    "name of 201 characters": "open F, '>', '/logs/agent/' . 'x' x 201",
    "name of 255 bytes": "open F, '>', '/logs/agent/' . 'x' x 255",
    "key of 900 bytes": "$d = '/logs/agent'; for (1 .. 6) { $d .= '/' . 'k' x 180; mkdir $d } open F, '>', $d . '/f'",
    "name that grows": "open F, '>', '/logs/agent/' . '%' x 200",
    "path over PATH_MAX": _DEEP,
    "invalid UTF-8": "open F, '>', qq(/logs/agent/\\xff\\xfe.txt)",
    "control characters": "open F, '>', qq(/logs/agent/a\\nb\\e[31m\\\\.txt)",
    "case collision": "open F, '>', '/logs/agent/A'; open G, '>', '/logs/agent/a'",
    "right to left": "open F, '>', qq(/logs/agent/\\xe2\\x80\\xaetxt.exe)",
    "trajectory of bytes": "open F, '>', '/logs/agent/trajectory.json'; print F qq(\\xff\\xfe{)",
    "trajectory of brackets": "open F, '>', '/logs/agent/trajectory.json'; print F '[' x 100000",
    "trajectory of halves": "open F, '>', '/logs/agent/trajectory.json'; print F '{\"steps\": [\"\\\\ud800\"]}'",
    "trajectory as a folder": "mkdir '/logs/agent/trajectory.json'",
    "recording of nothing": "open F, '>', '/logs/agent/recording.cast'; print F 'x' x 100000",
}
LEFT_BY_VERIFIER = {
    "400 digits": '{"results": {"tests": [{"name": "t", "status": "passed", "duration": 1' + "0" * 400 + "}]}}",
    "5000 digits": '{"results": {"tests": [{"name": "t", "status": "passed", "duration": 1' + "0" * 5000 + "}]}}",
    "lone surrogate": '{"results": {"tests": [{"name": "\\\\ud800", "status": "failed", "message": "\\\\udfff"}]}}',
    "infinite": '{"results": {"tests": [{"name": "t", "status": "passed", "duration": 1e999}]}}',
    "not a list": '{"results": {"tests": {"name": "t"}}}',
    "unhashable": '{"results": {"tests": [{"name": ["t"], "status": ["passed"]}, 7]}}',
    "nothing": "null",
}


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory, image_cache: Path) -> dict[str, Any]:
    """One job of all of them. Every solution is wrong, so that a trial that is not graded would hide a failure."""
    folder = tmp_path_factory.mktemp("hostile")
    names: dict[str, str] = {}
    for kind, code in LEFT_BY_AGENT.items():
        names[write_task(folder / "tasks", f"agent-{len(names)}", solve=f"perl -e '{_quoted(code)}'").name] = kind
    for kind, text in LEFT_BY_VERIFIER.items():
        test = f"{TEST}\ncat > /logs/verifier/ctrf.json <<'END'\n{text.replace(chr(92) * 2, chr(92))}\nEND"
        names[write_task(folder / "tasks", f"verifier-{len(names)}", solve="true", test=test).name] = f"ctrf: {kind}"
    brackets = f"{TEST}\nperl -e 'print \"[\" x 100000' > /logs/verifier/ctrf.json"
    names[write_task(folder / "tasks", "verifier-deep", solve="true", test=brackets).name] = "ctrf: brackets"
    with CommandLine(folder / "home", image_cache, folder) as cli:
        cli("run", folder / "tasks", "--agent", "oracle", "--sandbox", "oci")
        shown = [cli.json("trial", "show", str(number + 1)) for number in range(len(names))]
    return {names[trial["trial"]["task"]["name"].removeprefix("tests/")]: trial for trial in shown}


def _quoted(code: str) -> str:
    return code.replace("'", "'\\''")


@pytest.mark.parametrize("kind", [*LEFT_BY_AGENT, *(f"ctrf: {kind}" for kind in (*LEFT_BY_VERIFIER, "brackets"))])
def test_a_failure_is_a_failure_whatever_was_left(trials: dict[str, Any], kind: str) -> None:
    found = trials[kind]
    assert found["trial"]["outcome"] == "failed", found["result"]["message"]
    assert found["result"]["rewards"] == {"reward": 0.0}
    assert len(found["tries"]) == 1, "it was run once"
    assert "verifier/reward.txt" in [file["path"] for file in found["result"]["files"]]


@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        ("name of 201 characters", "x" * 201),
        ("name of 255 bytes", "x" * 255),
        ("name that grows", "%" * 200),
        ("invalid UTF-8", "%FF%FE.txt"),
        ("control characters", "a%0Ab%1B[31m%5C.txt"),
        ("right to left", "%E2%80%AEtxt.exe"),
        ("case collision", "A"),
        ("case collision", "a"),
        ("trajectory of brackets", "trajectory.json"),
    ],
)
def test_what_can_be_kept_is_kept_by_a_name_that_can_be_shown(trials: dict[str, Any], kind: str, shown: str) -> None:
    assert f"agent/{shown}" in [file["path"] for file in trials[kind]["result"]["files"]]


def test_what_is_too_deep_is_left_out_and_said(trials: dict[str, Any]) -> None:
    left_out = trials["path over PATH_MAX"]["result"]["files_left_out"]
    assert left_out["count"] >= 1 and left_out["examples"][0]["reason"]
    assert trials["benign"]["result"]["files_left_out"] is None


NO_REWARDS = ["1" + "0" * 400, "NaN", "Infinity", '"1"', "[" * 100_000, '{"a": {"b": 1}}', '{"reward": 1e999}']


def test_what_is_no_reward_is_an_error_of_the_verifier_at_once(cli: CommandLine, tmp_path: Path) -> None:
    for number, reward in enumerate(NO_REWARDS):
        text = f'{{"reward": {reward}}}' if reward[0] not in "[{" else reward
        (task := write_task(tmp_path / "tasks", f"reward-{number}", test="cp /tests/r /logs/verifier/reward.json"))
        (task / "tests" / "r").write_text(text)
    write_task(tmp_path / "tasks", "reward-benign", solve=SOLVE)
    cli("run", tmp_path / "tasks", "--agent", "oracle", "--sandbox", "oci", status=3)
    shown = [cli.json("trial", "show", str(number + 1)) for number in range(len(NO_REWARDS) + 1)]
    graded = {trial["trial"]["task"]["name"].removeprefix("tests/"): trial for trial in shown}
    assert graded.pop("reward-benign")["trial"]["outcome"] == "passed"
    for trial in graded.values():
        assert (trial["trial"]["outcome"], trial["trial"]["cause"]) == ("error", "verifier"), trial["result"]["message"]
        assert len(trial["tries"]) == 1
