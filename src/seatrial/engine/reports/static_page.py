"""A job or a trial as pages that open from a folder, without a network, a server or a script.

Pure functions from values to HTML. Every text comes from tasks, agents and people, so every text is escaped; the pages
forbid scripts and requests by a content security policy, too. Links lead to fixed names only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any

from seatrial.domain.frozen import Frozen
from seatrial.domain.job import Job, JobCounts
from seatrial.domain.reports.report import ConfigurationReport, JobReport
from seatrial.domain.result import Result, StoredFile
from seatrial.domain.trial import Trial
from seatrial.engine.reports.atif import items, results, text_of
from seatrial.ports.store import TrialRow

LONGEST_TEXT = 200_000
"""Characters of one text of a transcript."""
MOST_STEPS = 2_000
MOST_FILES = 2_000
_NOT_SEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
"""Controls, direction marks and halves of characters. They would change what a reader sees."""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_STYLE = """
:root{color-scheme:light dark;--ink:#14201f;--soft:#4a5a5c;--ground:#fbfcfc;--raised:#f3f5f6;--line:#dfe4e6;
--passed:#177245;--failed:#b3261e;--error:#8a5300}
@media(prefers-color-scheme:dark){:root{--ink:#e6eded;--soft:#a9b8bb;--ground:#0e1416;--raised:#1b2529;--line:#263237;
--passed:#5fcf8e;--failed:#ff8f86;--error:#f0b357}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--ground);max-width:70rem;margin:auto;
padding:1rem;font-variant-numeric:tabular-nums;overflow-wrap:anywhere}
a{color:inherit}h1{font-size:1.3rem}h2{font-size:1rem;margin-top:2rem}.soft{color:var(--soft)}
.wide{overflow-x:auto}table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.3rem .6rem;
border-bottom:1px solid var(--line);vertical-align:top}td.n,th.n{text-align:right}
pre{background:var(--raised);padding:.6rem;white-space:pre-wrap;overflow-wrap:anywhere;font-size:.82rem}
details{border-bottom:1px solid var(--line);padding:.3rem 0}summary{cursor:pointer}
.passed{color:var(--passed)}.failed{color:var(--failed)}.error{color:var(--error)}
"""
_SHAPES = {"passed": "●", "failed": "✕", "error": "▲", "cancelled": "–"}


class ExportedTrial(Frozen):
    """A trial with what its last try left."""

    row: TrialRow
    trajectory: Any = None
    files: tuple[StoredFile, ...] = ()
    left_out: tuple[str, ...] = ()
    """What is missing, in words."""


def job_page(job: Job, counts: JobCounts, report: JobReport, rows: Sequence[TrialRow], exported: str) -> str:
    """The first page of a job; ``exported`` says when and by what."""
    body = [
        f"<h1>{text(job.title)} <span class=soft>#{job.id}</span></h1>",
        f"<p class=soft>{counts.ended} of {counts.total} planned trials ended: {counts.passed} passed, "
        f"{counts.failed} failed, {counts.error} errors, {counts.cancelled} cancelled."
        + (
            f" {counts.added.total} attempts were added after the plan; no score counts them."
            if counts.added.total
            else ""
        )
        + "</p>",
        "<h2>Scores</h2>",
        _table(
            ("Configuration", "Score", "95 % interval", "Coverage", "Errors as 0"), map(_score, report.configurations)
        ),
        "<h2>Trials</h2>",
        _table(("Trial", "Result", "Task", "Configuration", "Attempt", "Reward", "Time"), map(_line, rows)),
    ]
    return page(job.title, body, exported)


def trial_page(of: ExportedTrial, exported: str, *, of_job: bool) -> str:
    """``of_job``: the job's page is beside it."""
    trial, result = of.row.trial, of.row.result
    title = f"{trial.task.name}, attempt {trial.attempt}"
    body = [
        '<p><a href="../index.html">‹ all trials</a></p>' if of_job else "",
        f"<h1>{text(trial.task.name)} <span class=soft>· {text(_configuration(trial))} · attempt {trial.attempt} · "
        f"trial {trial.id}</span></h1>",
        f"<p>{_state(trial)}{_reward(result)}</p>",
        f"<p>{text(result.message)}</p>" if result and result.message else "",
        *_tests(result),
        *_transcript(of.trajectory),
        *_files(of.files),
        *(f"<p class=soft>{text(missing)}</p>" for missing in of.left_out),
    ]
    return page(title, body, exported)


def page(title: str, body: Iterable[str], exported: str) -> str:
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            '<meta name="referrer" content="no-referrer"><meta name="viewport" content="width=device-width">',
            f"<title>{text(title)} · Seatrial</title><style>{_STYLE}</style></head><body>",
            *(part for part in body if part),
            f"<p class=soft>{text(exported)}</p>",
            "</body></html>\n",
        ]
    )


def text(content: object) -> str:
    """Any text as HTML that shows it: escaped, without invisible characters."""
    return escape(_NOT_SEEN.sub("\ufffd", str(content)), quote=True)


def page_name(trial_id: int) -> str:
    """Made of a number alone: names are untrusted."""
    return f"trials/{trial_id}.html"


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{text(heading)}</th>" for heading in headings)
    lines = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<div class=wide><table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table></div>"


def _score(of: ConfigurationReport) -> tuple[str, ...]:
    line = of.headline
    if line.value is None:
        return text(of.label), "not scored", "", f"{of.coverage:.1%}", "–"
    interval = f"{line.low:.1%} to {line.high:.1%}" if line.low is not None and line.high is not None else "none"
    return text(of.label), f"{line.value:.1%}", interval, f"{of.coverage:.1%}", f"{line.leaderboard:.1%}"


def _line(row: TrialRow) -> tuple[str, ...]:
    trial, result = row.trial, row.result
    return (
        f'<a href="{page_name(trial.id)}">{trial.id}</a>',
        _state(trial),
        text(trial.task.name),
        text(_configuration(trial)),
        f"{trial.attempt}{' (added)' if trial.added else ''}",
        "" if result is None or result.reward is None else f"{result.reward:g}",
        "" if result is None else f"{result.seconds:.1f} s",
    )


def _state(trial: Trial) -> str:
    word = str((trial.outcome or trial.state).value)
    cause = f" ({text(trial.cause.value)})" if trial.cause else ""
    return f'<span class="{word}">{_SHAPES.get(word, "○")} {word}{cause}</span>'


def _reward(result: Result | None) -> str:
    return "" if result is None or result.reward is None else f" · reward {result.reward:g} · {result.seconds:.1f} s"


def _configuration(trial: Trial) -> str:
    return f"{trial.agent} / {trial.model}" if trial.model else trial.agent


def _tests(result: Result | None) -> Iterator[str]:
    if result is None or not result.tests:
        return
    passed = sum(test.status == "passed" for test in result.tests)
    yield f"<h2>Tests ({passed} of {len(result.tests)} passed)</h2>"
    for test in result.tests:
        word = str(test.status.value)
        head = f'<span class="{word}">{_SHAPES.get(word, "○")} {word}</span> {text(test.name)}'
        opened = " open" if word in ("failed", "error") and test.message else ""
        yield f"<details{opened}><summary>{head}</summary>{_pre(test.message)}</details>"


def _transcript(trajectory: Any) -> Iterator[str]:
    steps = items(trajectory.get("steps")) if isinstance(trajectory, Mapping) else []
    if not steps:
        return
    yield f"<h2>Transcript ({len(steps)} steps)</h2>"
    for number, step in enumerate(steps[:MOST_STEPS], start=1):
        if isinstance(step, Mapping):
            yield _step(number, step)
    if len(steps) > MOST_STEPS:
        yield f"<p class=soft>{len(steps) - MOST_STEPS} more steps are left out.</p>"


def _step(number: int, step: Mapping[str, Any]) -> str:
    parts = [("thought", text_of(step.get("reasoning_content"))), ("message", text_of(step.get("message")))]
    calls = [call for call in items(step.get("tool_calls")) if isinstance(call, Mapping)]
    parts += [(str(call.get("function_name", "call")), _call(call.get("arguments"))) for call in calls]
    seen = [text_of(result.get("content")) for result in results(step) if isinstance(result, Mapping)]
    parts.append(("output", "\n".join(seen)))
    shown = "".join(f"<div class=soft>{text(name)}</div>{_pre(content)}" for name, content in parts if content)
    return f"<details open><summary>{number} {text(str(step.get('source', '')))}</summary>{shown}</details>"


def _call(arguments: Any) -> str:
    if isinstance(arguments, Mapping):
        for name in ("keystrokes", "command"):
            if isinstance(arguments.get(name), str):
                return str(arguments[name])
    return "" if not arguments else str(arguments)


def _files(files: Sequence[StoredFile]) -> Iterator[str]:
    if not files:
        return
    yield f"<h2>Files ({len(files)})</h2>"
    yield _table(
        ("File", "Bytes"), ((f"<code>{text(file.path)}</code>", f"{file.size:,}") for file in files[:MOST_FILES])
    )
    if len(files) > MOST_FILES:
        yield f"<p class=soft>{len(files) - MOST_FILES} more files are left out.</p>"


def _pre(content: str) -> str:
    cut = content[:LONGEST_TEXT].strip("\n")
    more = f"\n… {len(content) - LONGEST_TEXT} more characters" if len(content) > LONGEST_TEXT else ""
    return f"<pre>{text(cut + more)}</pre>" if cut else ""
