"""Request and response models of AgentCompass, and the options of the agent for a request.

Unknown keys are ignored everywhere, except parameters of the model: each goes with every call, or is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, Field

from seatrial.domain.agents.catalogue import keys_for
from seatrial.domain.result import Result
from seatrial.engine.reports.conversation import Message
from seatrial.errors import InvalidInput

_ID_NAMES = ("task_name", "instance_id", "terminal_bench_task_id", "task_id")
_LONGEST_ID = 255
_OPENAI = "openai"
_OF_AGENT = frozenset({"temperature", "reasoning_effort"})
"""Parameters that the agent sends itself."""
_OF_CALL = frozenset(
    {
        "frequency_penalty",
        "logit_bias",
        "max_completion_tokens",
        "max_tokens",
        "n",
        "presence_penalty",
        "seed",
        "stop",
        "top_p",
    }
)
"""OpenAI's own parameters. All others go into the body unchanged."""
_NOT_HERE = {
    "api_base": "llm_config.url",
    "api_key": "llm_config.api_key",
    "base_url": "llm_config.url",
    "extra_headers": "llm_config.api_key",
    "model": "llm_config.model_name",
    "timeout": "llm_config.request_timeout",
    "url": "llm_config.url",
}
_SET_BY_AGENT = ("messages", "stream", "stream_options")


def _none_if_empty(value: Any) -> Any:
    return None if value == "" else value


def _empty_if_none(value: Any) -> Any:
    return {} if value is None else value


class LlmConfig(BaseModel):
    model_name: str = Field(min_length=1, max_length=300, pattern=r"^[^\x00]*$")
    api_key: Annotated[str | None, BeforeValidator(_none_if_empty)] = Field(default=None, repr=False)
    url: Annotated[str | None, BeforeValidator(_none_if_empty)] = Field(default=None, max_length=2000)
    model_infer_params: Annotated[dict[str, Any], BeforeValidator(_empty_if_none)] = {}
    """Passed to the model with every call."""
    request_timeout: float | None = Field(default=None, gt=0, le=86400, allow_inf_nan=False)
    """Timeout of one model call, in seconds."""


class TaskRequest(BaseModel):
    params: Annotated[dict[str, Any], BeforeValidator(_empty_if_none)] = {}
    llm_config: LlmConfig
    max_steps: int | None = Field(default=None, ge=1, le=100_000)
    """Maximum turns of the agent."""

    @property
    def task_id(self) -> str | None:
        """Clients of different versions use different names; the first one present counts."""
        return next((name for name in self._candidates() if isinstance(name, str) and name), None)

    @property
    def instruction(self) -> str | None:
        """Replaces the instruction of the task."""
        statement = self._metadata.get("problem_statement")
        return statement if isinstance(statement, str) and statement.strip() else None

    @property
    def _metadata(self) -> Mapping[str, Any]:
        metadata = self.params.get("metadata")
        return metadata if isinstance(metadata, Mapping) else {}

    def _candidates(self) -> Iterator[Any]:
        yield self.params.get("task_id")
        for source in (self._metadata, self.params):
            for name in _ID_NAMES:
                value = source.get(name)
                yield value[:_LONGEST_ID] if isinstance(value, str) else value


class Turn(BaseModel):
    """One message of the conversation."""

    step: int
    role: str
    content: str


class Grading(BaseModel):
    """The last step."""

    step: int
    action: Literal["evaluation"] = "evaluation"
    output: str
    """``{'resolved': …, 'output': …}`` as text; ``output`` is the verifier's."""


class CallStat(BaseModel):
    model: str
    api_calls: int
    total_cost: float


def _self_contained(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with its references resolved. Inside an OpenAPI document its own definitions would not be found."""
    definitions = schema.pop("$defs", {})

    def whole(part: Any) -> Any:
        if isinstance(part, dict):
            reference = part.get("$ref")
            if reference:
                return whole(definitions[reference.rpartition("/")[2]])
            return {name: whole(value) for name, value in part.items()}
        return [whole(item) for item in part] if isinstance(part, list) else part

    found: dict[str, Any] = whole(schema)
    return found


BODY_SCHEMA = _self_contained(TaskRequest.model_json_schema())


class TrialAnswer(BaseModel):
    """A task that ran and was graded."""

    final_answer: str
    """``"True"`` or ``"False"``."""
    trajectory: list[Turn | Grading]
    call_stat: CallStat
    status: str
    error: str | None = None
    retryable: bool = False
    reward: float | None = None
    trial_id: int


class Fault(BaseModel):
    """A task that could not be graded; never an answer of ``"False"``."""

    detail: str
    status: str = "error"
    error: str
    cause: str | None = None
    retryable: bool
    trial_id: int | None = None


def turns(messages: tuple[Message, ...], resolved: bool, verifier_output: str) -> list[Turn | Grading]:
    spoken = [Turn(step=n, role=each.role, content=each.content) for n, each in enumerate(messages, 1)]
    grading = {"resolved": resolved, "output": verifier_output}
    return [*spoken, Grading(step=len(spoken) + 1, output=str(grading))]


def call_stat(model: str, result: Result) -> CallStat:
    return CallStat(model=model, api_calls=result.usage.model_calls or 0, total_cost=result.usage.cost_usd or 0.0)


def model_called(name: str, url: str | None) -> str:
    """The name of the model for LiteLLM. A model with its own address uses OpenAI's protocol, whatever its name."""
    if url is not None:
        return f"{_OPENAI}/{name}"
    return name if "/" in name or keys_for(name) else f"{_OPENAI}/{name}"


def model_options(
    params: Mapping[str, Any], *, url: str | None, max_turns: int | None, request_timeout: float | None
) -> dict[str, Any]:
    """The options of the agent. Raises ``InvalidInput`` for a parameter that would have no effect."""
    options: dict[str, Any] = {}
    body: dict[str, Any] = {}
    for name, value in params.items():
        if name in _NOT_HERE:
            raise _misplaced(name, f"Set {_NOT_HERE[name]} instead.")
        if name in _SET_BY_AGENT:
            raise _misplaced(name, "Remove it: the agent sets it.")
        if value is None:
            continue
        if name == "extra_body" and isinstance(value, Mapping):
            body.update(value)
        elif name in _OF_AGENT | _OF_CALL:
            options[name] = value
        else:
            body[name] = value
    if options:
        # LiteLLM drops parameters that it does not expect for a model of this name.
        options["llm_call_kwargs"] = {"allowed_openai_params": sorted(options)}
    given = {"extra_body": body or None, "api_base": url, "max_turns": max_turns, "timeout": request_timeout}
    return options | {name: value for name, value in given.items() if value is not None}


def _misplaced(name: str, fix: str) -> InvalidInput:
    field = f"llm_config.model_infer_params.{name}"
    return InvalidInput(f"{name!r} is not a parameter of the model's answer.", field=field, fix=fix)
