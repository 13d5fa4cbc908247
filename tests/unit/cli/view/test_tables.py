"""What people see: numbers with unit and uncertainty, names in full at every width, foreign text only ever as text."""

from __future__ import annotations

import io
from datetime import UTC, datetime

import pytest
from rich.console import Console

from seatrial.cli.view.comparison_tables import print_comparisons
from seatrial.cli.view.details import print_report
from seatrial.cli.view.figures import dollars, estimate, listing, percent, plain, signed_points, span, tokens
from seatrial.cli.view.tables import print_run
from seatrial.domain.comparisons.comparison import compare, compare_all
from seatrial.domain.job import AgentSpec, Job, JobSpec, plan
from seatrial.domain.result import Result, TestResult, Usage
from seatrial.domain.result import TestStatus as Status
from seatrial.domain.task import TaskRef
from seatrial.domain.trial import Cause, Mark, Outcome, Trial, TrialState
from seatrial.engine.reports.reporting import facts_of
from seatrial.ports.store import TrialRow
from tests.sides import side
from tests.summaries import reported, summarised

NOW = datetime(2026, 1, 2, tzinfo=UTC)
GPT = AgentSpec(name="terminus-2", model="openrouter/gpt-x")
CLAUDE = AgentSpec(name="terminus-2", model="anthropic/claude")
TRICKY = "[red]evil[/red]\x1b[2J\x07"


def make_job(stories: dict[str, tuple[str, ...]], agents: tuple[AgentSpec, ...] = (GPT,)) -> tuple[Job, list[TrialRow]]:
    """For each task one string for each agent, a letter for each trial: P, F, E (LLM error), C (cancelled)."""
    attempts = len(next(iter(stories.values()))[0])
    refs = tuple(TaskRef(name=name, digest=f"sha256:{index:064x}") for index, name in enumerate(stories))
    job = Job(id=7, spec=JobSpec(name="nightly", tasks=refs, agents=agents, attempts=attempts), created_at=NOW)
    outcomes = {"P": Outcome.PASSED, "F": Outcome.FAILED, "E": Outcome.ERROR, "C": Outcome.CANCELLED}
    rows = []
    for number, new in enumerate(plan(job.spec), start=1):
        outcome = outcomes[stories[new.task.name][new.agent_index][new.attempt - 1]]
        cause = Cause.LLM if outcome is Outcome.ERROR else None
        trial = Trial(
            **new.model_dump(exclude={"task"}), task=new.task, id=number, job_id=7, state=TrialState.ENDED,
            outcome=outcome, cause=cause, created_at=NOW,
        )  # fmt: skip
        result = Result(
            outcome=outcome,
            cause=cause,
            rewards={"reward": float(outcome is Outcome.PASSED)} if outcome.graded else {},
            marks=(Mark.AGENT_TIMEOUT,) if outcome is Outcome.FAILED else (),
            seconds=72.0,
            usage=Usage(input_tokens=40_000, cached_tokens=1000, output_tokens=8_200, cost_usd=0.61),
            tests=(TestResult(name="test_[bold]board", status=Status.PASSED),) if outcome.graded else (),
        )
        rows.append(TrialRow(trial=trial, result=result))
    return job, rows


def seen(width: int = 120) -> tuple[Console, io.StringIO]:
    output = io.StringIO()
    return Console(file=output, width=width, highlight=False), output


def run_table(job: Job, rows: list[TrialRow], width: int = 120) -> list[str]:
    console, output = seen(width)
    print_run(console, job, reported(rows, job), rows, 721.0)
    return [line.rstrip() for line in output.getvalue().splitlines()]


def test_a_run_ends_with_its_table_and_headline() -> None:
    job, rows = make_job({"chess": ("PPFFE",), "regex": ("PPPPP",), "zip": ("FFFFF",)})
    lines = run_table(job, rows, 160)
    assert lines == [
        "task    passed    score        95 %      time   tokens   cost  errors",
        "chess      2/4   50.0 %   15 – 85 %  1 m 12 s  241.0 k  $3.05  1 llm",
        "regex      5/5  100.0 %  57 – 100 %  1 m 12 s  241.0 k  $3.05  –",
        "zip        0/5    0.0 %    0 – 43 %  1 m 12 s  241.0 k  $3.05  –",
        "terminus-2 / openrouter/gpt-x  50.0 % ± 50.0  coverage 93.3 %  leaderboard 46.7 %  "
        "bounds 46.7 to 53.3 %  pass@2 61.1 %  $9.15",
        "errors by cause: 1 llm",
        "marks: 7 agent_timeout",
        "job 7: 15 trials: 7 passed, 7 failed, 1 error; 12 m 01 s in total",
    ]


def test_every_task_has_a_row_for_each_configuration() -> None:
    job, rows = make_job({"chess": ("PP", "PF"), "regex": ("FF", "PP")}, (GPT, CLAUDE))
    lines = run_table(job, rows)
    assert [line.split()[0] for line in lines[1:5]] == ["chess", "chess", "regex", "regex"]
    assert "terminus-2 / anthropic/claude" in lines[1], "the better one first"
    assert "terminus-2 / openrouter/gpt-x" in lines[2]
    assert any(line.startswith("terminus-2 / anthropic/claude  75.0 %") for line in lines)


def test_columns_that_say_nothing_are_left_out() -> None:
    job, rows = make_job({"chess": ("PP",)}, (AgentSpec(name="oracle"),))
    bare = [
        row.model_copy(update={"result": row.result.model_copy(update={"usage": Usage()})})
        for row in rows
        if row.result
    ]
    header = run_table(job, bare)[0].split()
    assert "tokens" not in header
    assert "cost" not in header
    assert "errors" not in header
    assert "tokens" in run_table(job, rows)[0]


@pytest.mark.parametrize("width", [120, 80, 60, 40])
def test_narrow_terminals_lose_columns_but_no_name_and_no_digit(width: int) -> None:
    name = "a-task-with-quite-a-long-name-of-its-own"
    job, rows = make_job({name: ("PPFFE", "PPPPP"), "regex": ("FFFFF", "PFFFF")}, (GPT, CLAUDE))
    lines = run_table(job, rows, width)
    assert all(len(line) <= width for line in lines)
    header = next(line for line in lines if "passed" in line)
    assert "score" in header
    assert not any("…" in line for line in lines)
    first_column = "".join(line[: header.index("agent") if "agent" in header else 18].strip() for line in lines[1:6])
    assert "a-task-with" in first_column
    assert any("100.0 %" in line for line in lines)
    assert ("tokens" in header) == (width >= 120)


def test_text_of_tasks_is_only_text() -> None:
    job, rows = make_job({TRICKY: ("PE",)}, (AgentSpec(name="pkg:Agent[bold]", model="[link=x]m"),))
    console = Console(file=io.StringIO(), width=160, force_terminal=True)
    print_run(console, job, reported(rows, job), rows, 1.0)
    print_report(console, job, reported(rows, job, with_tests=True))
    facts = facts_of(summarised(rows), job.spec)
    print_comparisons(console, [compare(side("[red]A", facts), side("B\x1b]0;x\x07", facts))], every_task=True)
    assert isinstance(console.file, io.StringIO)
    output = console.file.getvalue()
    for literal in ("[red]evil[/red]�[2J�", "Agent[bold]", "[link=x]m", "test_[bold]board", "[red]A", "B�]0;x�"):
        assert literal in output
    assert "\x1b[2J" not in output
    assert "\x1b]0;" not in output
    assert "\x07" not in output
    assert "\x1b[" in output  # the console itself does colour


def test_a_task_without_a_valid_trial_is_named() -> None:
    job, rows = make_job({"chess": ("PP",), "regex": ("EE",)})
    lines = run_table(job, rows)
    story = "no valid trial of regex: not in the score, 0 on the leaderboard"
    assert f"terminus-2 / openrouter/gpt-x: {story}" in lines
    assert any(line.startswith("regex      0/0        –") for line in lines)


def test_one_task_has_an_interval_in_its_row_and_none_over_tasks() -> None:
    job, rows = make_job({"chess": ("PPPFF",)})
    lines = run_table(job, rows)
    assert "23 – 88 %" in lines[1] and any("60.0 %  coverage 100.0 %" in line for line in lines[2:])


def test_a_report_labels_both_intervals_and_the_rules() -> None:
    job, rows = make_job({f"t{index:02}": ("PPFFF" if index % 3 else "PPPPP",) for index in range(24)})
    console, output = seen(140)
    print_report(console, job, reported(rows, job, with_tests=True))
    text = output.getvalue()
    for part in (
        "job 7 (nightly): 120 trials: 72 passed, 48 failed",
        "60.0 % ± 12.2  coverage 100.0 %  leaderboard 60.0 %  pass@5 100.0 %  $73.20",
        "tasks as a sample: 47.8 to 72.2 % (95 % t)",
        "tasks fixed, run to run: 52.0 to 68.0 % (95 % normal)",
        "pass@1 60.0 %  pass@2 80.0 %  pass@5 100.0 %  pass^2 40.0 %  pass^5 33.3 %",
        "coverage           100.0 %: 120 valid of 120 planned",
        "mean reward        0.600",
        "marks              48 agent_timeout",
        "cost per trial     p10 $0.61, p50 $0.61, p90 $0.61, p99 $0.61",
        "median 1 m 12 s, p90 1 m 12 s, longest 1 m 12 s, in all 2 h 24 m",
        "4.8 M in (120.0 k cached), 984.0 k out",
        "$73.20, $0.61 per trial, $1.02 per success",
        "test_[bold]board",
        "Rules of terminal-bench-leaderboard 2.0: kept.",
    ):
        assert part in text


def test_a_report_says_why_a_number_is_missing() -> None:
    job, rows = make_job({"chess": ("P",)})
    console, output = seen(140)
    print_report(console, job, reported(rows, job))
    text = output.getvalue()
    assert "tasks as a sample: not available, one task says nothing about others" in text
    assert "tasks fixed, run to run: not available, needs 2 scored trials of every task; 1 of 1 have fewer" in text
    assert "broken: at least 5 trials of every task (1 tasks have fewer, 'chess' among them)." in text


def test_nothing_ended_yet_is_still_a_report() -> None:
    job, rows = make_job({"chess": ("PP",)})
    queued = [
        TrialRow(trial=row.trial.model_copy(update={"state": TrialState.QUEUED, "outcome": None, "cause": None}))
        for row in rows
    ]
    console, output = seen()
    print_report(console, job, reported(queued, job))
    assert "0 of 2 trials ended" in output.getvalue()
    assert "Still running" in output.getvalue()
    assert "no task has a trial to score" in output.getvalue()


def test_an_empty_job_prints_something() -> None:
    job, _ = make_job({"chess": ("P",)})
    assert run_table(job, [])[-1] == "job 7: 0 trials; 12 m 01 s in total"


def test_a_comparison_shows_verdict_numbers_and_regressions() -> None:
    job_a, rows_a = make_job({f"t{index:02}": ("PPPPF" if index < 20 else "FFFFF",) for index in range(30)})
    job_b, rows_b = make_job({f"t{index:02}": ("PFFFF" if index < 20 else "FFFFP",) for index in range(30)})
    comparisons = compare_all(
        [(side("old", facts_of(summarised(rows_a), job_a.spec)), side("new", facts_of(summarised(rows_b), job_b.spec)))]
    )
    console, output = seen(120)
    print_comparisons(console, comparisons)
    text = output.getvalue()
    assert text.startswith("old is better than new by 33.3 points (95 % interval 19.0 to 47.7, p = 0.0002)")
    for part in (
        "A       old  53.3 % over 30 common tasks, valid trials",
        "B − A   −33.3 points, 95 % interval −47.7 to −19.0",
        "(exact sign-flip permutation)",
        "is the smallest difference seen with a chance of 80 %, from the spread of these trials",
        "t00       4/5  1/5  −60.0",
        "t29       0/5  1/5  +20.0",
    ):
        assert part in text
    assert text.index("t19") < text.index("t20")


def test_a_comparison_names_what_it_left_out() -> None:
    job_a, rows_a = make_job({"common": ("PP",), "mine": ("PP",)})
    job_b, rows_b = make_job({"common": ("PF",), "yours": ("EE",)})
    a, b = side("A", facts_of(summarised(rows_a), job_a.spec)), side("B", facts_of(summarised(rows_b), job_b.spec))
    console, output = seen()
    print_comparisons(console, [compare(a, b)])
    assert "Only in A: mine" in output.getvalue()
    assert "Only in B: yours" in output.getvalue()
    assert "no interval: one task says nothing about others" in output.getvalue()


def test_figures_carry_their_unit() -> None:
    assert estimate(0.6, 0.5, 0.7) == "60.0 % ± 10.0"
    assert estimate(0.65, 0.5, 0.7) == "65.0 % (50.0 to 70.0)"
    assert estimate(0.6, None, None) == "60.0 %"
    assert estimate(None, None, None) == percent(None) == span(None) == dollars(None) == tokens(None) == "–"
    assert [tokens(number) for number in (812, 48_200, 999_949, 999_950, 3_100_000)] == [
        "812", "48.2 k", "999.9 k", "1.0 M", "3.1 M",
    ]  # fmt: skip
    assert [dollars(amount) for amount in (0.0, 0.0042, 0.61, 1234.5)] == ["$0.00", "$0.0042", "$0.61", "$1,234.50"]
    assert [signed_points(share) for share in (0.4, -0.4, -0.0001)] == ["+40.0", "−40.0", "0.0"]
    assert plain("a\nb\u202ec").plain == "a�b�c"
    assert listing(("a", "b", "c"), most=2) == "a, b and 1 more"


def test_long_labels_stand_below_their_task_and_do_not_wrap() -> None:
    claude = AgentSpec(name="terminus-2", model="openrouter/anthropic/claude-4.5")
    job, rows = make_job({"a-task-with-quite-a-long-name": ("PPPPP", "PFFFF")}, (claude, GPT))
    assert run_table(job, rows, 80)[:4] == [
        "task                                            passed    score      time",
        "a-task-with-quite-a-long-name",
        "  terminus-2 / openrouter/anthropic/claude-4.5     5/5  100.0 %  1 m 12 s",
        "  terminus-2 / openrouter/gpt-x                    1/5   20.0 %  1 m 12 s",
    ]
