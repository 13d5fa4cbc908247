"""A tenant asks an agent for what lies on the worker's machine: files, classes, commands, credentials.

Harbor's agents are made in the worker's process. Whatever their constructors would read there never gets that far.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from harbor.agents.installed.mini_swe_agent import MiniSweAgent
from hypothesis import given
from hypothesis import strategies as st

from seatrial.adapters.runner_harbor.config import with_files
from seatrial.domain.agents.agent_options import ALLOWED, AT_THE_MACHINE_ONLY, EVERYWHERE, REFUSED
from seatrial.domain.agents.catalogue import agent_names
from seatrial.domain.job import AgentSpec, JobSpec
from seatrial.domain.task import Task, TaskFormat, TaskRef
from seatrial.domain.token import Role
from seatrial.domain.trial import Trial
from seatrial.engine.jobs.option_rules import check_agent
from seatrial.errors import InvalidInput
from seatrial.ports.runner import Order
from tests.attacks.tenant.doors import OPEN, Doors, doors_open
from tests.properties import trying

SECRET = "/etc/shadow"
HOST_FILES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("mini-swe-agent", {"config_file": SECRET}),
    ("mini-swe-agent", {"config": SECRET}),
    ("mini-swe-agent", {"litellm_model_registry_file": SECRET}),
    ("mini-swe-agent", {"prompt_template_path": SECRET}),
    ("mini-swe-agent", {"version": "../../../../tmp/x"}),
    ("mini-swe-agent", {"version": "2.4.6 @ file:///tmp/x"}),
    ("mini-swe-agent", {"config_file": {"content": "x", "path": SECRET}}),
    ("mini-swe-agent", {"config_file": {"content": "x" * 70_000}}),
    ("claude-code", {"memory_dir": "/root"}),
    ("claude-code", {"config": SECRET}),
    ("codex", {"load_trajectory": SECRET}),
    ("antigravity-cli", {"binary_path": SECRET}),
    ("cline-cli", {"tarball_path": SECRET}),
    ("cline-cli", {"tarball-path": SECRET}),
    ("cline-cli", {"local-plugin-tarball-path": SECRET}),
    ("deerflow", {"config_path": SECRET}),
    ("nemo-agent", {"config_file": SECRET}),
    ("nemo-agent", {"workflow_package": "/root"}),
    ("codex", {"skills_dir": "/root"}),
    ("codex", {"logs_dir": "/root"}),
    ("codex", {"mcp_servers": [{"name": "x", "command": "id"}]}),
    ("codex", {"extra_env": {"CODEX_AUTH_JSON_PATH": SECRET}}),
    ("terminus-2", {"llm_kwargs": {"api_key": "x"}}),
    ("terminus-2", {"llm_call_kwargs": {"extra_headers": {"Host": "a.example"}}}),
    ("terminus-2", {"llm_call_kwargs": {"vertex_credentials": SECRET}}),
    ("terminus-2", {"llm_call_kwargs": {"extra_body": {"aws_profile_name": "default"}}}),
    ("terminus-2", {"extra_body": {"vertex_credentials": SECRET}}),
    ("terminus-2", {"extra_headers": {"Host": "a.example"}}),
    ("terminus-2", {"session_id_headers": ["Authorization"]}),
    ("terminus-2", {"model_info": {"litellm_provider": "ollama"}}),
    ("terminus-2", {"llm_backend": "tinker"}),
    ("computer-1", {"provider": "bedrock"}),
    ("swe-agent", {"completion_kwargs": '{"api_base": "http://127.0.0.1"}'}),
    ("oracle", {"task_dir": "/root"}),
)
VARIABLES = (
    ("codex", "CODEX_AUTH_JSON_PATH", SECRET),
    ("codex", "CODEX_FORCE_AUTH_JSON", "1"),
    ("gemini-cli", "GEMINI_OAUTH_CREDS_PATH", SECRET),
    ("gemini-cli", "GEMINI_FORCE_OAUTH", "1"),
    ("antigravity-cli", "GOOGLE_APPLICATION_CREDENTIALS", SECRET),
    ("antigravity-cli", "AGY_ADC_AUTH", "1"),
    ("claude-code", "CLAUDE_FORCE_OAUTH", "1"),
    ("mini-swe-agent", "MSWEA_GLOBAL_CONFIG_DIR", "/root"),
    ("swe-agent", "SWEAGENT_CONFIG", SECRET),
    ("codex", "codex_auth_json_path", SECRET),
    ("terminus-2", "STOLEN", "${HOME}"),
    ("terminus-2", "A=B", "x"),
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def doors(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("OPENAI_API_KEY", "sk-ours")
        async with doors_open(tmp_path_factory.mktemp("home"), Role.USER) as opened:
            yield opened


@pytest.mark.parametrize(("agent", "options"), HOST_FILES, ids=lambda value: str(value)[:60])
async def test_no_option_reaches_the_workers_machine(doors: Doors, agent: str, options: dict[str, Any]) -> None:
    body = [{"name": agent, "model": "openai/gpt-4", "options": options}]
    answer = await doors.job(422, keys={"OPENAI_API_KEY": "sk-mine"}, agents=body)
    assert next(iter(options)) in answer["error"]["message"] + answer["error"]["field"], answer
    assert "root:" not in json.dumps(answer)


@pytest.mark.parametrize(("agent", "name", "value"), VARIABLES)
async def test_no_variable_reaches_the_workers_machine(doors: Doors, agent: str, name: str, value: str) -> None:
    body = [{"name": agent, "model": "openai/gpt-4", "env": {name: value}}]
    answer = await doors.job(422, keys={"OPENAI_API_KEY": "sk-mine"}, agents=body)
    assert name in answer["error"]["message"]


@pytest.mark.parametrize("agent", [*AT_THE_MACHINE_ONLY, "seatrial.testing.fake_runner:FakeRunner", "os:system"])
@pytest.mark.parametrize("role", [Role.USER, Role.ADMIN])
async def test_no_class_and_no_folder_of_the_machine_is_an_agent(tmp_path: Path, agent: str, role: Role) -> None:
    async with doors_open(tmp_path, role) as doors:
        answer = await doors.job(422, agents=[{"name": agent, "model": "openai/gpt-4"}])
    assert answer["error"]["field"] == "agent"


async def test_an_agent_that_the_operator_listed_is_taken(tmp_path: Path) -> None:
    listed = "tests.e2e.agents:Painter"
    async with doors_open(tmp_path, Role.USER, allowed_agents=f"other.place:Agent, {listed}") as doors:
        await doors.job(agents=[{"name": listed, "options": {"colour": "green", "depth": 3}}])
        await doors.job(422, agents=[{"name": "tests.e2e.agents:Other"}])


async def test_harmless_options_are_taken(doors: Doors) -> None:
    """The twins: what the same agents may be asked for."""
    for agent, options, env in (
        ("mini-swe-agent", {"config_file": {"content": "agent: {}\n"}, "version": "2.4.6"}, {"JOB_NAME": "x"}),
        ("mini-swe-agent", {"config_file": {"content": {"agent": {"step_limit": 3}}}, "cost_limit": 3}, {}),
        ("claude-code", {"max_turns": 3, "config": {"permissions": {"deny": ["Bash"]}}}, {"LANG": "C.UTF-8"}),
        ("codex", {"reasoning_effort": "high", "web_search": "disabled"}, {"TZ": "UTC"}),
        ("cline-cli", {"timeout": 60, "cline_version": "1.2.3"}, {}),
        ("nemo-agent", {"config_file": {"content": "llms: {}"}}, {}),
        ("terminus-2", {"temperature": 0.2, "max_turns": 5, "extra_body": {"top_k": 3}, "seed": 7}, {"ANY": "thing"}),
        ("terminus-2", {"llm_call_kwargs": {"max_tokens": 10}, "model_info": {"max_input_tokens": 1000}}, {}),
        ("oracle", {}, {"N": "1"}),
    ):
        body = [{"name": agent, "model": "openai/gpt-4", "options": options, "env": env}]
        await doors.job(keys={"OPENAI_API_KEY": "sk-mine"}, agents=body)


async def test_an_unknown_option_is_answered_with_the_known_ones(doors: Doors) -> None:
    answer = await doors.agent("terminus-2", "openai/gpt-4", 422, options={"Max_Turns": 3})
    assert "Did you mean max_turns?" in answer["error"]["fix"] and "temperature" in answer["error"]["fix"]


async def test_options_for_all_agents_go_through_the_same_rule(doors: Doors) -> None:
    agents = [{"name": "mini-swe-agent"}]
    keys = {"OPENAI_API_KEY": "sk-mine"}
    for given_options, status in (({"config_file": SECRET}, 422), ({"max_tokens": 100}, 201)):
        await doors.job(status, keys=keys, agents=agents, models=["openai/gpt-4"], options=given_options)


async def test_agentcompass_parameters_cannot_choose_credentials(tmp_path: Path) -> None:
    async with doors_open(tmp_path, **OPEN) as doors:
        for name, value in (
            ("vertex_credentials", SECRET),
            ("extra_headers", {"Host": "x"}),
            ("aws_profile_name", "d"),
        ):
            await doors.compass(422, model_infer_params={name: value})
            await doors.compass(422, model_infer_params={"extra_body": {name: value}})


def test_a_file_that_came_with_the_job_is_written_beside_the_attempt(tmp_path: Path) -> None:
    for content, written in (("agent: {}\n", "agent: {}\n"), ({"agent": {}}, '{\n  "agent": {}\n}')):
        agent = AgentSpec(name="mini-swe-agent", model="openai/x", options={"config_file": {"content": content}})
        place = Path(with_files(_order(agent, tmp_path))["config_file"])
        assert place.read_text() == written and place.is_relative_to(tmp_path)
        made = MiniSweAgent(logs_dir=tmp_path, model_name="openai/x", config_file=str(place))
        assert written in list(vars(made).values()), "the agent takes the file as its own"


def test_harbors_agent_reads_any_file_that_it_is_told(tmp_path: Path) -> None:
    """Why all of this is: its constructor runs in the worker."""
    secret = tmp_path / "secret"
    secret.write_text("of the worker")
    made = MiniSweAgent(logs_dir=tmp_path, model_name="openai/x", config_file=str(secret))
    assert "of the worker" in list(vars(made).values())


def _order(agent: AgentSpec, directory: Path) -> Any:
    ref = TaskRef(name="t", digest="sha256:" + "0" * 64)
    task = Task(digest=ref.digest, name="t", format=TaskFormat.HARBOR, instruction="x")
    trial = Trial(
        id=1, job_id=1, task=ref, agent_index=0, agent=agent.name, model=None, attempt=1, created_at=datetime.now(UTC)
    )
    return Order(trial, task, directory, JobSpec(tasks=(ref,), agents=(agent,)), agent, work_dir=directory)


def test_the_table_knows_every_agent_and_every_option_of_harbor() -> None:
    """A new Harbor brings new options: each has to be allowed or refused on purpose."""
    from harbor.agents.factory import AgentFactory
    from harbor.models.agent.name import AgentName

    assert set(agent_names()) == set(ALLOWED) | set(AT_THE_MACHINE_ONLY)
    for name in ALLOWED:
        model = AgentFactory.get_agent_class(AgentName(name)).options_model
        harbors = set(model.model_fields) if model is not None else set()
        decided = set(ALLOWED[name]) | set(REFUSED.get(name, {})) | set(EVERYWHERE)
        assert harbors <= decided, (name, harbors - decided)
        for option in REFUSED.get(name, {}):
            assert option in harbors, (name, option)


_NAMES = sorted(
    {name for refused in REFUSED.values() for name in refused} | set(EVERYWHERE) | {"config_file", "config"}
)


@st.composite
def spellings(draw: st.DrawFn) -> str:
    """A forbidden name as somebody would try to smuggle it in."""
    name = draw(st.sampled_from(_NAMES))
    change = draw(
        st.sampled_from(
            (
                str.upper,
                str.title,
                lambda text: text.replace("_", "-"),
                lambda text: text.replace("_", "."),
                lambda text: text.replace("i", "ı").replace("e", "е"),
                lambda text: f" {text}",
                lambda text: f"{text}\u200b",
                lambda text: f"{text}\x00",
                lambda text: f"options.{text}",
                lambda text: f"**{text}",
                lambda text: text.translate({ord(letter): ord(letter) + 0xFEE0 for letter in text if letter.isalpha()}),
                lambda text: text,
            )
        )
    )
    return str(change(name))


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30) | st.just(SECRET),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=12) | spellings(), inner, max_size=3),
    max_leaves=8,
)


@trying(400)
@given(agent=st.sampled_from(sorted(ALLOWED)), name=spellings() | st.text(max_size=20), value=_VALUES)
def test_nothing_outside_the_table_reaches_a_constructor(agent: str, name: str, value: Any) -> None:
    spec = AgentSpec(name=agent, model="openai/gpt-4", options={name: value})
    try:
        check_agent(spec)
    except InvalidInput:
        return
    assert name in ALLOWED[agent]
    assert value is None or ALLOWED[agent][name].accepts(value)
    if name in ("config_file", "config"):
        assert value is None or isinstance(value, dict), "a text would be a path"
    assert not any(text.startswith("/etc/shadow") for text in _paths(name, value))


def _paths(name: str, value: Any) -> Iterator[str]:
    """Texts that an agent would open on the worker; what is inside of a document or a file goes to the sandbox."""
    if name not in ("config_file", "config") and isinstance(value, str) and name.endswith(("_path", "_file", "_dir")):
        yield value
