"""Request and response models of AgentCompass. Unknown keys are ignored everywhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, Field

from seatrial.domain.result import Result
from seatrial.engine.reports.conversation import Message

_ID_NAMES = ("task_name", "instance_id", "terminal_bench_task_id", "task_id")
_LONGEST_ID = 255


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
