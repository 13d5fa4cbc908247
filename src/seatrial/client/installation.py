"""Methods for the installation: catalogue, workers, queue, tokens and keys."""

from __future__ import annotations

from pydantic import SecretStr

from seatrial.client.ask import Ask, Paged, given, nothing, place, reads
from seatrial.client.verbs import Group, list_verb, verb
from seatrial.domain.frozen import Frozen
from seatrial.domain.token import Role
from seatrial.shapes.access import KeyItem, KeyPage, SessionState, TokenItem, TokenMade, TokenPage, TokenRequest
from seatrial.shapes.budgets import DayBudget
from seatrial.shapes.catalogue import (
    AgentItem,
    AgentList,
    ModelItem,
    ModelList,
    SandboxItem,
    SandboxList,
)
from seatrial.shapes.operations import FleetState, QueueState, RunningPage, RunningTrial, Stats, WorkerItem, WorkerList


class _KeyValue(Frozen):
    """The only model that contains the key itself."""

    value: str


def list_agents() -> Ask[list[AgentItem]]:
    """All agents."""
    return Ask("GET", "/agents", lambda answer: reads(AgentList)(answer).items)


def list_models() -> Ask[list[ModelItem]]:
    """A selection of models. ``ready`` is true if the service has a key."""
    return Ask("GET", "/models", lambda answer: reads(ModelList)(answer).items)


def list_sandboxes() -> Ask[list[SandboxItem]]:
    """All sandboxes."""
    return Ask("GET", "/sandboxes", lambda answer: reads(SandboxList)(answer).items)


def list_workers() -> Ask[list[WorkerItem]]:
    """Known workers and their load."""
    return Ask("GET", "/workers", lambda answer: reads(WorkerList)(answer).items)


def get_queue() -> Ask[QueueState]:
    """Queued trials, running trials, and free capacity."""
    return Ask("GET", "/queue", reads(QueueState))


def get_fleet() -> Ask[FleetState]:
    """What autoscalers follow: open work in machine-sized units, and the machines for it."""
    return Ask("GET", "/fleet", reads(FleetState))


def list_running_trials(*, page_size: int = 200) -> Paged[RunningTrial]:
    """Running trials with their worker and sandbox, newest first."""
    return Paged(Ask("GET", "/queue/running", reads(RunningPage), given(limit=page_size)))


def get_budget() -> Ask[DayBudget]:
    """What all jobs together have spent on models today, and the operator's cap for a day."""
    return Ask("GET", "/budget", reads(DayBudget))


def get_stats() -> Ask[Stats]:
    """Jobs by status, trials by state and outcome, errors by cause."""
    return Ask("GET", "/stats", reads(Stats))


def who_am_i() -> Ask[SessionState]:
    """The caller's name and role."""
    return Ask("GET", "/session", reads(SessionState))


def list_tokens() -> Ask[list[TokenItem]]:
    """All tokens, newest first. Tokens and keys are for admins only."""
    return Ask("GET", "/tokens", lambda answer: reads(TokenPage)(answer).items)


def create_token(name: str, role: Role = Role.USER, expires: str = "90d") -> Ask[TokenMade]:
    """Creates a token; only this answer contains its secret. ``expires``: 30d, 12h, 2w or never."""
    return Ask("POST", "/tokens", reads(TokenMade), body=TokenRequest(name=name, role=role, expires=expires))


def revoke_token(token_id: int) -> Ask[None]:
    """Revokes a token and every session that was opened with it."""
    return Ask("DELETE", place("tokens", token_id), nothing)


def list_keys() -> Ask[list[KeyItem]]:
    """Names of the stored provider keys. Values are never returned."""
    return Ask("GET", "/keys", lambda answer: reads(KeyPage)(answer).items)


def set_key(name: str, value: SecretStr | str) -> Ask[None]:
    """Stores a provider key, encrypted, for all jobs."""
    secret = value.get_secret_value() if isinstance(value, SecretStr) else value
    return Ask("PUT", place("keys", name), nothing, body=_KeyValue(value=secret))


def delete_key(name: str) -> Ask[None]:
    """Deletes a provider key."""
    return Ask("DELETE", place("keys", name), nothing)


class Installation[Driver](Group[Driver]):
    """``client.installation``"""

    agents = verb(list_agents)
    models = verb(list_models)
    sandboxes = verb(list_sandboxes)
    workers = verb(list_workers)
    queue = verb(get_queue)
    fleet = verb(get_fleet)
    running = list_verb(list_running_trials)
    budget = verb(get_budget)
    stats = verb(get_stats)
    who_am_i = verb(who_am_i)


class Tokens[Driver](Group[Driver]):
    """``client.tokens``"""

    list = verb(list_tokens)
    create = verb(create_token)
    revoke = verb(revoke_token)


class Keys[Driver](Group[Driver]):
    """``client.keys``"""

    list = verb(list_keys)
    set = verb(set_key)
    delete = verb(delete_key)
