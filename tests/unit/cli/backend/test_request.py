"""Flags and job files become one request; what is wrong is said with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from seatrial.cli.backend.request import parse_options, parse_pairs, read_request
from seatrial.domain.model_calls.budget import Budget, Cap
from seatrial.errors import InvalidInput


def needs_model(name: str) -> bool:
    return name not in ("oracle", "nop")


def test_agents_times_models_and_the_oracle_once() -> None:
    request = read_request({"agents": ("oracle", "terminus-2"), "models": ("openai/a", "openai/b")}, None)
    assert [spec.label for spec in request.matrix(needs_model)] == [
        "oracle",
        "terminus-2 / openai/a",
        "terminus-2 / openai/b",
    ]


def test_without_an_agent_it_is_the_oracle() -> None:
    assert [spec.name for spec in read_request({}, None).matrix(needs_model)] == ["oracle"]


def test_flags_win_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text("attempts: 3\nsandbox: oci\nagents:\n  - name: terminus-2\n    model: openai/a\n")
    request = read_request({"attempts": 5}, file)
    assert (request.attempts, request.sandbox) == (5, "oci")
    assert request.matrix(needs_model)[0].model == "openai/a"


def test_a_budget_of_flags_replaces_single_caps_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text("budget:\n  job: {dollars: 5, calls: 100}\n  trial: {tokens: 9000}\n")
    budget = read_request({"budget": {"job": {"dollars": 2.0}}}, file).budget
    assert budget == Budget(job=Cap(dollars=2, calls=100), trial=Cap(tokens=9000))
    assert read_request({"budget": {}}, None).budget == Budget()
    assert read_request({"budget": {"trial": {"calls": 3}}}, None).budget == Budget(trial=Cap(calls=3))


@pytest.mark.parametrize(
    "wrong", ["budget: 5", "budget: {job: 5}", "budget: {job: {dollars: -5}}", "budget: {all: {}}"]
)
@pytest.mark.parametrize("flags", [{}, {"budget": {"trial": {"calls": 3}}}])
def test_a_budget_that_cannot_be_read_is_refused(tmp_path: Path, wrong: str, flags: dict[str, object]) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(wrong)
    with pytest.raises(InvalidInput, match="budget"):
        read_request(flags, file)


def test_a_harbor_job_file_is_understood(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(
        "jobs_dir: jobs\nn_attempts: 2\nn_concurrent_trials: 7\nenvironment:\n  type: docker\n"
        "agents:\n  - name: terminus-2\n    model_name: openai/a\n    kwargs:\n      temperature: 0.5\n"
        "datasets:\n  - path: my/tasks\n"
    )
    request = read_request({}, file)
    assert (request.attempts, request.concurrency, request.sandbox) == (2, 7, "harbor:docker")
    assert request.paths == (Path("my/tasks"),)
    assert request.matrix(needs_model)[0].options == {"temperature": 0.5}


def test_an_unknown_field_is_named(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text("atempts: 3\n")
    with pytest.raises(InvalidInput, match="atempts"):
        read_request({}, file)


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text("a: [")
    with pytest.raises(InvalidInput, match="not valid YAML"):
        read_request({}, file)
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_request({}, tmp_path / "missing.yaml")


def test_options_are_json_where_they_can_be() -> None:
    parsed = parse_options(["temperature=0.2", "parser_name=xml", "flag=true"], "--ak")
    assert parsed == {"temperature": 0.2, "parser_name": "xml", "flag": True}
    with pytest.raises(InvalidInput, match="KEY=VALUE"):
        parse_pairs(["novalue"], "--ae")


@pytest.mark.parametrize(("field", "fine"), [("seed", 2**63 - 1), ("seed", -5), ("sample", 2**31 - 1), ("limit", 1)])
def test_numbers_of_a_selection_have_bounds(field: str, fine: int) -> None:
    assert getattr(read_request({"selection": {field: fine}}, None).selection, field) == fine
    with pytest.raises(InvalidInput, match=rf"selection\.{field}: .* less than or equal to"):
        read_request({"selection": {field: 10**30}}, None)
