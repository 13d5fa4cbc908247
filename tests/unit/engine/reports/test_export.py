"""Trajectories as training rows: who said what, which answer belongs to which call, and what must not be trained on."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from seatrial.domain.result import Result
from seatrial.domain.task import TaskRef
from seatrial.domain.trial import Outcome, Trial, TrialState
from seatrial.engine.reports.export import conversation, read_tokens, scored_trajectory, training_row
from seatrial.ports.store import TrialRow

CALL = {"tool_call_id": "c1", "function_name": "bash", "arguments": {"command": "ls"}}
OTHER = {"tool_call_id": "c2", "function_name": "bash", "arguments": {}}


def row(outcome: Outcome = Outcome.FAILED, rewards: dict[str, float] | None = None) -> TrialRow:
    trial = Trial(
        id=7,
        job_id=3,
        task=TaskRef(name="a-task", digest="sha256:00"),
        agent_index=0,
        agent="terminus-2",
        model="m",
        attempt=1,
        state=TrialState.ENDED,
        outcome=outcome,
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
    )
    return TrialRow(
        trial=trial, result=Result(outcome=outcome, rewards={"reward": 0.5} if rewards is None else rewards)
    )


def step(source: str, message: Any, **more: Any) -> dict[str, Any]:
    return {"step_id": 1, "source": source, "message": message, **more}


def test_the_prompt_ends_where_the_model_first_speaks() -> None:
    prompt, completion = conversation({"steps": [step("system", "s"), step("user", "u"), step("agent", "a")]})
    assert prompt == [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]
    assert completion == [{"role": "assistant", "content": "a"}]


def test_every_call_has_one_answer_even_where_results_name_none() -> None:
    named = {"results": [{"source_call_id": "c1", "content": "one"}, {"source_call_id": "c2", "content": "two"}]}
    unnamed = {"results": [{"content": "screen"}]}
    for observation, answers in ((named, ["one", "two"]), (unnamed, ["", "screen"])):
        steps = [step("user", "u"), step("agent", "a", tool_calls=[CALL, OTHER], observation=observation)]
        said, *heard = conversation({"steps": steps})[1]
        assert [call["id"] for call in said["tool_calls"]] == ["c1", "c2"]
        assert said["tool_calls"][0]["function"] == {"name": "bash", "arguments": '{"command": "ls"}'}
        assert [(each["role"], each["tool_call_id"]) for each in heard] == [("tool", "c1"), ("tool", "c2")]
        assert [each["content"] for each in heard] == answers


def test_what_belongs_to_no_call_was_said_by_the_user() -> None:
    steps = [step("agent", "a", observation={"results": [{"content": [{"type": "text", "text": "screen"}]}]})]
    assert conversation({"steps": steps})[1][1] == {"role": "user", "content": "screen"}


def test_repeated_context_is_left_out() -> None:
    steps = [step("agent", "old", is_copied_context=True), step("agent", "new")]
    assert [message["content"] for message in conversation({"steps": steps})[1]] == ["new"]


def test_a_row_has_the_deciding_reward_and_says_where_it_comes_from() -> None:
    made = training_row(row(), {"steps": [step("user", "u"), step("agent", "a")]})
    assert made is not None
    assert (made["reward"], made["task"], made["info"]["trial"]) == (0.5, "a-task", 7)


def test_an_error_has_no_reward_rather_than_zero() -> None:
    made = training_row(row(Outcome.ERROR, {}), {"steps": [step("agent", "a")]})
    assert made is not None
    assert made["reward"] is None


def test_what_is_no_trajectory_is_left_out() -> None:
    for strange in (None, [], {}, {"steps": "x"}, {"steps": [1]}, {"steps": [step("user", "u")]}):
        assert training_row(row(), strange) is None
    assert scored_trajectory(row(), {"steps": []}) is None


def test_a_trajectory_keeps_everything_and_gains_a_reward() -> None:
    original = {"schema_version": "ATIF-v1.8", "steps": [step("agent", "a")], "extra": {"own": 1}}
    made = scored_trajectory(row(), original)
    assert made is not None
    assert made["steps"] == original["steps"]
    assert (made["extra"]["own"], made["extra"]["reward"]) == (1, 0.5)


def test_token_ids_and_logprobs_are_given_back() -> None:
    told = [{"call": 1, "prompt_token_ids": [1], "choices": [{"index": 0, "completion_token_ids": [2]}]}]
    content = json.dumps(told[0]).encode() + b'\n\xff\nnull\n{"choices": 3}\n{"call": 2, "cho'
    tokens = read_tokens(content)
    assert tokens == told
    trajectory = {"steps": [step("agent", "a")]}
    row_, atif = training_row(row(), trajectory, tokens), scored_trajectory(row(), trajectory, tokens)
    assert row_ is not None and atif is not None and row_["tokens"] == atif["extra"]["tokens"] == told
    plain = training_row(row(), trajectory)
    assert plain is not None and "tokens" not in plain
