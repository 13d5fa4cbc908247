"""Everything that reads what a sandbox wrote takes whatever it finds there: fuzzed with bytes and with hostile JSON."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from harbor.models.agent.context import AgentContext
from harbor.models.trial.result import ExceptionInfo, TrialResult
from hypothesis import given
from hypothesis import strategies as st

from seatrial.adapters.runner_harbor.outcome import result_of
from seatrial.adapters.runner_harbor.tests_found import tests_in as found_tests
from seatrial.domain.output import OutputStream
from seatrial.domain.result import Result
from seatrial.domain.task import TaskRef
from seatrial.domain.terminal_text import readable
from seatrial.domain.terminal_text import shown as shown_text
from seatrial.domain.trial import Outcome, Trial, TrialState
from seatrial.engine.clock import system_clock
from seatrial.engine.live.steps import StepLog
from seatrial.engine.live.tail import Tail
from seatrial.engine.reports.conversation import _messages
from seatrial.engine.reports.export import scored_trajectory, training_row
from seatrial.engine.trials.found_files import Names
from seatrial.engine.trials.recordable import recordable
from seatrial.engine.trials.redaction import Redaction
from seatrial.ports.blobs import checked_key
from seatrial.ports.store import TrialRow
from seatrial.sandboxes.terminal import recording
from tests.properties import trying

_QUICK = trying(150)
_HOSTILE = [
    "[" * 100_000,
    '{"a":' * 50_000,
    "1" + "0" * 400,
    "1" + "0" * 5000,
    "1e999",
    "-Infinity",
    "NaN",
    '"\\ud800"',
    '"\\u0000"',
    "null",
    "{}",
    "",
]

texts = st.text(st.characters(codec=None, exclude_categories=()), max_size=20)
numbers = st.one_of(
    st.integers(), st.floats(), st.just(10**400), st.just(-(10**400)), st.just(float("nan")), st.just(float("inf"))
)
scalars = st.one_of(st.none(), st.booleans(), numbers, texts)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(texts, inner, max_size=4)),
    max_leaves=8,
)


def like(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """An object that has these fields, or lacks them, or has anything in their place."""
    return st.one_of(
        values, st.fixed_dictionaries({}, optional={name: st.one_of(field, values) for name, field in fields.items()})
    )


ctrf = like(
    results=like(
        tests=st.lists(
            like(
                name=texts,
                status=st.sampled_from(["passed", "failed", "skipped", "other"]),
                duration=numbers,
                message=texts,
                trace=texts,
            ),
            max_size=4,
        )
    )
)
step = like(
    step_id=numbers,
    source=st.sampled_from(["agent", "user", "system"]),
    message=st.one_of(texts, st.lists(like(text=texts), max_size=3)),
    reasoning_content=texts,
    is_copied_context=st.booleans(),
    tool_calls=st.lists(like(tool_call_id=texts, function_name=texts, arguments=like(command=texts)), max_size=3),
    observation=like(results=st.lists(like(source_call_id=texts, content=texts), max_size=3)),
    metrics=like(prompt_tokens=numbers, completion_tokens=numbers, cost_usd=numbers),
)
trajectory = like(steps=st.lists(step, max_size=4), extra=values)

TRIAL = Trial(
    id=1,
    job_id=1,
    task=TaskRef(name="t", digest="sha256:" + "0" * 64),
    agent_index=0,
    agent="oracle",
    model=None,
    attempt=1,
    state=TrialState.RUNNING,
    try_number=1,
    created_at=system_clock(),
)
ROW = TrialRow(trial=TRIAL, result=Result(outcome=Outcome.FAILED, rewards={"reward": 0.0}))


@contextmanager
def file_with(name: str, content: bytes) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        yield path


def told(value: Any) -> bytes:
    return json.dumps(value).encode()


def storable(value: Any) -> None:
    """Whether a database could keep it."""
    text = value.model_dump_json() if hasattr(value, "model_dump_json") else json.dumps(value, allow_nan=False)
    text.encode()


def _tests(content: bytes, name: str) -> None:
    with file_with(name, content) as path:
        for test in found_tests(path.parent):
            storable(test)
            assert len(test.name) <= 1000 and len(test.message) <= 4000


@_QUICK
@given(ctrf)
def test_reports_of_tests(report: Any) -> None:
    _tests(told(report), "ctrf.json")


@_QUICK
@given(st.binary(max_size=300), st.sampled_from(["ctrf.json", "test-stdout.txt"]))
def test_reports_of_bytes(content: bytes, name: str) -> None:
    _tests(content, name)


@_QUICK
@given(st.lists(st.sampled_from(["PASSED ", "FAILED ", "a::b", "::", " ", " - ", "\x00", "é", "x" * 500, "\n"])))
def test_output_of_pytest(parts: list[str]) -> None:
    _tests("".join(parts).encode(), "test-stdout.txt")


@pytest.mark.parametrize("content", _HOSTILE, ids=lambda content: content[:12])
def test_known_hostile_texts_everywhere(content: str) -> None:
    _tests(content.encode(), "ctrf.json")
    _tests(f'{{"results": {{"tests": [{{"name": "t", "duration": {content or 0}}}]}}}}'.encode(), "ctrf.json")
    _steps(content.encode())
    _steps(f'{{"steps": [{{"step_id": {content or 0}, "message": {content or 0}}}]}}'.encode())
    _recording(content.encode())
    _recording(f'{{"version": 2, "width": {content or 0}, "height": 1}}\n[{content or 0}, "o", "x"]\n'.encode())
    assert isinstance(shown_text(f'[0, "o", {content or 0}]'), str)


def _steps(content: bytes) -> None:
    with file_with("agent/trajectory.json", content) as path:
        for event in StepLog(TRIAL, path.parent.parent, Redaction(["sk-canary-0123456789"])).read(last=True):
            storable(event.data)
            assert len(json.dumps(event.data)) < 64 << 10


@_QUICK
@given(trajectory)
def test_steps_as_they_are_told(found: Any) -> None:
    _steps(told(found))


@_QUICK
@given(trajectory)
def test_conversations_and_exports(found: Any) -> None:
    list(_messages(found))
    for shape in (training_row, scored_trajectory):
        json.dumps(shape(ROW, found))


@_QUICK
@given(st.lists(values, min_size=1, max_size=4))
def test_recordings(lines: list[Any]) -> None:
    _recording(b"\n".join(map(told, lines)))
    _recording(b"\n".join(map(told, [{"version": 2, "width": 80, "height": 24}, *lines])))


@_QUICK
@given(st.binary(max_size=300))
def test_recordings_of_bytes(content: bytes) -> None:
    _recording(content)
    with file_with("agent/recording.cast", content) as path:
        pieces = Tail(TRIAL, path.parent.parent, Redaction(["sk-canary-0123456789"])).read(None, last=True)
        assert all(piece.stream is OutputStream.TERMINAL and piece.text.encode() is not None for piece in pieces)
    readable(content.decode("utf-8", "replace"))


def _recording(content: bytes) -> None:
    with file_with("x.cast", content) as path:
        recording.repair_recording(path)
        assert content.startswith(path.read_bytes())


@_QUICK
@given(st.dictionaries(texts, numbers, max_size=3), st.one_of(st.none(), st.integers()), texts, values)
def test_results_of_harbor(rewards: dict[str, Any], tokens: int | None, message: str, episodes: Any) -> None:
    """As far as Harbor itself lets anything through."""
    trial = TrialResult.model_construct(
        verifier_result=AgentContext.model_construct(rewards=rewards),
        agent_result=AgentContext.model_construct(
            n_input_tokens=tokens, metadata={"n_episodes": episodes, "api_request_times_msec": episodes}
        ),
        exception_info=ExceptionInfo.model_construct(
            exception_type="E", exception_message=message, exception_traceback=message
        ),
    )
    result = result_of(trial, Path("/nowhere"))
    storable(result)
    assert Result.model_validate_json(result.model_dump_json()) == result


@_QUICK
@given(texts, st.dictionaries(texts, st.floats(), max_size=3), texts)
def test_any_result_can_be_recorded(message: str, rewards: dict[str, float], secret: str) -> None:
    result = Result.model_construct(outcome=Outcome.ERROR, message=message, rewards={}, steps={}, tests=())
    result = result.model_copy(update={"usage": result.usage.model_copy(update={"cost_usd": float("inf")})})
    clean = recordable(result, [secret, "123456"])
    storable(clean)
    Result.model_validate_json(clean.model_dump_json())


@_QUICK
@given(st.lists(st.lists(st.binary(min_size=1, max_size=255), min_size=1, max_size=8), max_size=6, unique_by=tuple))
def test_any_name_is_kept_under_a_key_and_shown(paths: list[list[bytes]]) -> None:
    names = Names("trials/1/1")
    clean = [[part.replace(b"/", b"_").replace(b"\0", b"_") for part in path] for path in paths]
    clean = [path for path in clean if not {b".", b".."} & set(path)]
    given_names = {b"/".join(path).decode("utf-8", "surrogateescape") for path in clean}
    found = [names.of(path) for path in given_names]
    assert len({shown for shown, _ in found}) == len({key for _, key in found}) == len(given_names)
    for shown, key in found:
        assert shown.isprintable() and shown.encode() and checked_key(f"trials/1/1/{key}")
