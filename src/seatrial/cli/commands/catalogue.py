"""``seatrial agents`` and ``seatrial models``. Does not import Harbor or LiteLLM."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from seatrial.cli.options import AsJson
from seatrial.cli.view.columns import Column, print_table

if TYPE_CHECKING:
    from seatrial.client import AsyncClient
    from seatrial.domain.agents.catalogue import Agent


_AGENTS = (
    Column("agent"),
    Column("model", rank=5),
    Column("kit", least=8, prose=True, rank=1),
    Column("key", least=12, prose=True, rank=3),
    Column("formats", least=8, prose=True, rank=4),
    Column("proven", rank=2),
    Column("description", least=24, prose=True, rank=6),
)
_MODELS = (
    Column("model"),
    Column("name", least=12, prose=True, rank=2),
    Column("ready", rank=1),
    Column("key", least=20, rank=3),
)


def agents(as_json: AsJson = False) -> None:
    """What ``seatrial agents`` prints."""
    from seatrial.cli.backend.session import print_json
    from seatrial.domain.agents.catalogue import AGENTS

    found = told_by_service(lambda client: client.installation.agents())
    known: Sequence[Agent] = AGENTS if found is None else found
    kits = _kits() if found is None else {}
    if as_json:
        ready = {name: {"kit": {"ready": versions}} for name, versions in kits.items()}
        print_json([agent.model_dump(mode="json") | ready.get(agent.name, {}) for agent in known])
        return
    print_table(_AGENTS, [_agent_cells(agent, kits.get(agent.name)) for agent in known])


def _kits() -> dict[str, list[str]]:
    """By agent that has a kit: the versions that are ready on this machine."""
    from seatrial.cli.backend.session import read_settings
    from seatrial.wiring import kits_of

    shelf = kits_of(read_settings())
    ready: dict[str, list[str]] = {name: [] for name in shelf.recipes}
    for found in shelf.ready():
        ready.setdefault(found.kit.agent, []).append(found.kit.version)
    return ready


def _agent_cells(agent: Agent, kits: list[str] | None) -> tuple[str, ...]:
    """``kits`` are the versions that are ready; ``None`` if there is no kit for this agent, or at a service."""
    return (
        agent.name,
        "required" if agent.needs_model else "",
        "" if kits is None else ", ".join(dict.fromkeys(kits)) or "on first use",
        " or ".join(agent.keys) or ("the model's" if agent.needs_model else ""),
        ", ".join(agent.formats),
        ", ".join(proof.version for proof in agent.proven),
        agent.description,
    )


def models(as_json: AsJson = False) -> None:
    """List known models. Any other LiteLLM name works too; scripted/NAME needs no key."""
    from seatrial.cli.backend.session import print_json
    from seatrial.domain.agents.catalogue import MODELS, keys_for

    found = told_by_service(lambda client: client.installation.models())
    if found is None:
        rows = [{**model.model_dump(mode="json"), "keys": keys_for(model.id)} for model in MODELS]
    else:
        rows = [model.model_dump(mode="json") for model in found]
    if as_json:
        print_json(rows)
        return
    print_table(_MODELS, [(row["id"], row["name"], _readiness(row), _keys(row)) for row in rows])


def _readiness(row: dict[str, Any]) -> str:
    """Only a service says whether it has the key."""
    return "" if "ready" not in row else "yes" if row["ready"] else "no key"


def _keys(row: dict[str, Any]) -> str:
    return " or ".join(row["keys"]) or "no key needed"


def told_by_service[Answer](ask: Callable[[AsyncClient], Coroutine[Any, Any, Answer]]) -> Answer | None:
    """The service's list; ``None`` without ``--server``."""
    import asyncio

    from seatrial.cli.backend.session import open_client, read_settings

    settings = read_settings()

    async def work() -> Answer:
        async with open_client(settings) as client:
            return await ask(client)

    return asyncio.run(work()) if settings.server else None
