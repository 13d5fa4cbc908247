"""Which tasks a run takes: globs, labels, samples, limits. ``--dry-run`` says so and runs nothing."""

from __future__ import annotations

from pathlib import Path

from tests.command_line import SAMPLES, CommandLine


def chosen(cli: CommandLine, *flags: str) -> list[str]:
    plan = cli.json("run", SAMPLES, "--dry-run", *flags)
    assert plan["trials"] == len(plan["tasks"])
    return [task["name"] for task in plan["tasks"]]


def test_filters_narrow_the_tasks(cli: CommandLine) -> None:
    everything = chosen(cli)
    assert everything == sorted(path.name for path in SAMPLES.iterdir() if path.is_dir())
    assert chosen(cli, "-i", "a*", "-i", "*-list") == ["answer-file", "tidy-the-list"]
    assert chosen(cli, "-x", "*-the-*", "-l", "2") == ["answer-file", "keep-serving"]
    assert chosen(cli, "--category", "data", "--difficulty", "easy") == ["tidy-the-list"]
    assert chosen(cli, "--tag", "interactive") == ["read-the-screen", "sign-the-guestbook"]
    drawn = chosen(cli, "--sample", "3", "--seed", "5")
    assert len(drawn) == 3
    assert set(drawn) < set(everything)
    assert drawn == chosen(cli, "--sample", "3", "--seed", "5")
    assert any(drawn != chosen(cli, "--sample", "3", "--seed", seed) for seed in ("6", "7", "8"))


def test_a_dry_run_checks_everything_and_runs_nothing(cli: CommandLine) -> None:
    plan = cli.json("run", SAMPLES, "-a", "oracle", "-a", "nop", "-k", "3", "--dry-run")
    assert (plan["trials"], plan["attempts"], plan["sandbox"]) == (2 * 3 * len(plan["tasks"]), 3, "auto")
    assert "Nothing was run" in cli("run", SAMPLES, "--dry-run").out
    assert cli.json("job", "list") == []


def test_options_are_for_the_agents_that_take_them(cli: CommandLine, tmp_path: Path) -> None:
    flags = ("--ak", "temperature=0.2", "--ak", "parser_name=xml", "-m", "scripted/shell", "-m", "scripted/give-up")
    plan = cli.json(
        "run", SAMPLES / "answer-file", "-a", "oracle", "-a", "terminus-2", "-a", "claude-code", *flags, "--dry-run"
    )
    options = {"temperature": 0.2, "parser_name": "xml"}
    assert [(agent["name"], agent["model"], agent["options"]) for agent in plan["agents"]] == [
        ("oracle", None, {}),
        ("terminus-2", "scripted/shell", options),
        ("terminus-2", "scripted/give-up", options),
        ("claude-code", "scripted/shell", options),
        ("claude-code", "scripted/give-up", options),
    ]
