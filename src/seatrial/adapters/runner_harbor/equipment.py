"""What one try's agent gets: Harbor's configuration, and beside it a key, a door to the gate, and patience.

``equip.py`` makes it, and the runner hands it to the agent that Harbor created. The notes that it gathers go into the
trial's lock.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from harbor.agents.base import BaseAgent
from harbor.models.trial.config import AgentConfig

from seatrial.agents.inside import OpenDoor, call_through_gate, tell_network
from seatrial.agents.model_retries import CallPace, retry_model_calls
from seatrial.engine.model_patience import ModelHealth, RetryLimits
from seatrial.gateway.call_budget import CallBudget
from seatrial.gateway.routes import Routes
from seatrial.gateway.trial_calls import TrialCalls
from seatrial.sandboxes.own_time import own_clock

KEY_INSIDE = "provider key in the sandbox: "
"""How a note begins that a sandbox had a key. Whose it was follows."""
WEB_SEARCH_OFF = "the agent's web search, which runs at the provider: off"
WITHOUT_WEB_SEARCH: Mapping[str, Mapping[str, str]] = {"codex": {"web_search": "disabled"}}
"""Options of agents that would offer a web search at the provider with every call, and end when it is refused."""


@dataclass(frozen=True)
class Equipment:
    """The configuration of one try's agent, and what the agent gets in addition to it."""

    agent: AgentConfig
    retries: RetryLimits
    api_key: str | None = None
    open_door: OpenDoor | None = None
    """For an agent inside the sandbox whose calls pass the gate."""
    without_door: Callable[[], Mapping[str, str]] | None = None
    """For the same agent, where its sandbox cannot be entered and a key may go in."""
    notes: list[str] = field(default_factory=list)
    """Notes for the trial's lock. Some are added while the agent runs."""
    pace: CallPace | None = None
    """For an agent whose calls this process makes without the gate."""
    calls: TrialCalls | None = None
    """The calls that pass the gate."""
    routes: Routes | None = None
    """Where they go."""
    call_budget: CallBudget | None = None
    """The budget of those calls."""

    def hand_to(self, agent: BaseAgent) -> ModelHealth:
        """Gives the agent its key, and patience with its model. The returned health is updated during the trial."""
        if self.open_door is not None:
            call_through_gate(agent, self.open_door, self.without_door)
        elif self.calls is not None:
            _before_run(agent, self._begins)
        if self.routes is not None:
            tell_network(agent, lambda online: self._goes_online(agent, online))
        health = retry_model_calls(
            agent,
            self.retries,
            key=self.api_key,
            pace=self.pace,
            begins=self._begins,
            is_spent=lambda: self.is_over_budget and self.replay_failure is None,
        )
        return health if self.calls is None else self.calls.health

    @property
    def has_key_inside(self) -> bool:
        return any(note.startswith(KEY_INSIDE) for note in self.notes)

    def _goes_online(self, agent: BaseAgent, online: bool) -> None:
        """The network may be closed by the task's compose file or the operator, which only the sandbox knows."""
        if self.routes is not None:
            self.routes.online = online
        off = {} if online else WITHOUT_WEB_SEARCH.get(self.agent.name or "", {})
        for name, value in off.items():
            setattr(agent.options, name, value)
        if off and WEB_SEARCH_OFF not in self.notes:
            self.notes.append(WEB_SEARCH_OFF)

    @property
    def is_over_budget(self) -> bool:
        return self.calls is not None and self.calls.sums.over_budget

    @property
    def replay_failure(self) -> str | None:
        """Why a replay could not go on."""
        return None if self.calls is None or self.calls.replay is None else self.calls.replay.failure

    def _begins(self) -> None:
        """Called in the task of an agent on the host, whose clock the gate stops."""
        if self.calls is not None:
            self.calls.begins(own_clock())


def _before_run(agent: Any, begins: Callable[[], None]) -> None:
    run = agent.run

    async def begun(instruction: str, environment: Any, context: Any) -> None:
        begins()
        await run(instruction=instruction, environment=environment, context=context)

    agent.run = begun
