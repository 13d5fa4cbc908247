"""Decides which agents, options and variables a caller of the service may use.

Checked for each agent of a job before the job is stored. The tables are in ``domain.agents.agent_options``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from seatrial.domain.agents.agent_options import (
    ALLOWED,
    ANY_VARIABLE,
    AT_THE_MACHINE_ONLY,
    EVERYWHERE,
    HARMLESS_VARIABLES,
    OWN_PREFIX,
    REFUSED,
    VARIABLES,
)
from seatrial.domain.agents.option_kinds import document, is_text
from seatrial.domain.job import AgentSpec
from seatrial.errors import InvalidInput

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,254}")
_MOST_VARIABLES = 100
_LONGEST_VALUE = 8192
_ADMIN = "It can be given with `seatrial run` on the machine itself."
_BODY_FIELDS = re.compile(
    r"(?:api_?(?:key|base|version|type)|(?:base|api|proxy|callback)_?url|.*headers?|aws_.*|azure_.*|vertex_.*|"
    r"prox(?:y|ies)|custom_llm_provider|fallbacks|model|model_list|mock_.*|messages|client|organization|"
    r"ssl_verify|.*_(?:path|file)|credentials?|litellm_.*)",
    re.IGNORECASE,
)
"""Names that LiteLLM uses itself, even in the body of a call."""


def check_agent(agent: AgentSpec, listed: Iterable[str] = ()) -> None:
    """Raises if a caller may not use this agent or one of its options. ``listed`` are the operator's own agents."""
    if agent.name in AT_THE_MACHINE_ONLY:
        problem = f"Agent {agent.name} is not for callers of this service: {AT_THE_MACHINE_ONLY[agent.name]}."
        raise InvalidInput(problem, field="agent", fix=_ADMIN)
    if agent.model is not None and not _MODEL.fullmatch(agent.model):
        raise InvalidInput("This is not the name of a model.", field="model", fix="Write it as provider/model.")
    check_variables(agent)
    if agent.name in ALLOWED:
        _check_options(agent)
    elif agent.name not in set(listed):
        raise InvalidInput(
            f"This service does not offer the agent {agent.name}.",
            field="agent",
            fix="Its operator can add your own agent to SEATRIAL_ALLOWED_AGENTS.",
        )
    elif not document().accepts(agent.options):
        raise InvalidInput(f"The options of {agent.name} are not {document().says}.", field="options")


def check_variables(agent: AgentSpec) -> None:
    if len(agent.env) > _MOST_VARIABLES:
        raise InvalidInput(f"More than {_MOST_VARIABLES} variables were given.", field="env")
    allowed = HARMLESS_VARIABLES | VARIABLES.get(agent.name, frozenset())
    for name, value in agent.env.items():
        known = agent.name in ANY_VARIABLE or name in allowed or name.startswith(OWN_PREFIX)
        if not _VARIABLE.fullmatch(name) or not known:
            raise InvalidInput(
                f"Callers of this service cannot set the variable {name[:100]!r} of {agent.name}.",
                field=f"env.{name[:100]}",
                fix=f"It takes {OWN_PREFIX}… and {', '.join(sorted(allowed))}. {_ADMIN}",
            )
        if not is_text(value, _LONGEST_VALUE) or "${" in value:
            raise InvalidInput(
                f"The variable {name} is not plain text of at most {_LONGEST_VALUE} characters.",
                field=f"env.{name}",
                fix="Variables of the worker, ${NAME}, cannot be used.",
            )


def _check_options(agent: AgentSpec) -> None:
    allowed = ALLOWED[agent.name]
    for name, value in agent.options.items():
        kind = allowed.get(name)
        if kind is None:
            raise _refusal(agent.name, name)
        if value is not None and not kind.accepts(value):
            raise InvalidInput(
                f"The option {name} of {agent.name} must be {kind.says}.",
                field=f"options.{name}",
                fix=f"It cannot be a path on the worker's machine. {_ADMIN}" if kind.is_file else "",
            )
        _check_body(name, value)


def _check_body(name: str, value: Any) -> None:
    body = value.get("extra_body") if name == "llm_call_kwargs" and isinstance(value, Mapping) else value
    if name not in ("extra_body", "llm_call_kwargs") or not isinstance(body, Mapping):
        return
    if taken := next((field for field in body if _BODY_FIELDS.fullmatch(field)), None):
        raise InvalidInput(
            f"{taken!r} is not a parameter of the model's answer.",
            field=f"options.{name}.{taken}",
            fix="Give the model's address as api_base, and its key in a header.",
        )


def _refusal(agent: str, name: str) -> InvalidInput:
    shown = name[:100]
    reason = REFUSED.get(agent, {}).get(name) or EVERYWHERE.get(name)
    if reason is not None:
        problem = f"The option {shown} of {agent} is not for callers of this service: {reason}."
        return InvalidInput(problem, field=f"options.{shown}", fix=_ADMIN)
    names = sorted(ALLOWED[agent])
    close = get_close_matches(shown.lower().replace("-", "_"), names, n=1)
    hint = f"Did you mean {close[0]}? " if close else ""
    takes = f"It takes {', '.join(names)}." if names else "It takes none."
    return InvalidInput(f"{agent} has no option {shown!r}.", field=f"options.{shown}", fix=hint + takes)
