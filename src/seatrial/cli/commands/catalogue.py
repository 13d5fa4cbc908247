"""``seatrial agents`` and ``seatrial models``. Does not import Harbor or LiteLLM."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from seatrial.cli.options import AsJson
from seatrial.cli.view.say import say

if TYPE_CHECKING:
    from seatrial.client import AsyncClient


def agents(as_json: AsJson = False) -> None:
    """List the agents. Use your own by import path, pkg.mod:Class."""
    from seatrial.cli.backend.session import print_json
    from seatrial.domain.catalogue import AGENTS, Agent

    found = _told_by_service(lambda client: client.installation.agents())
    known: Sequence[Agent] = AGENTS if found is None else found
    if as_json:
        print_json([agent.model_dump(mode="json") for agent in known])
        return
    for agent in known:
        say(f"{agent.name:<20} {agent.description}")


def models(as_json: AsJson = False) -> None:
    """List known models. Any other LiteLLM name works too; scripted/<script> needs no key."""
    from seatrial.cli.backend.session import print_json
    from seatrial.domain.catalogue import MODELS, keys_for

    found = _told_by_service(lambda client: client.installation.models())
    if found is None:
        rows = [{**model.model_dump(mode="json"), "keys": keys_for(model.id)} for model in MODELS]
    else:
        rows = [model.model_dump(mode="json") for model in found]
    if as_json:
        print_json(rows)
        return
    for row in rows:
        keys = " or ".join(row["keys"]) or "no key"
        ready = "" if "ready" not in row else "ready  " if row["ready"] else "no key "
        say(f"{ready}{row['id']:<48} {row['name']:<28} {keys}")


def _told_by_service[Answer](ask: Callable[[AsyncClient], Coroutine[Any, Any, Answer]]) -> Answer | None:
    """The service's list; ``None`` without ``--server``."""
    import asyncio

    from seatrial.cli.backend.session import open_client, read_settings

    settings = read_settings()

    async def work() -> Answer:
        async with open_client(settings) as client:
            return await ask(client)

    return asyncio.run(work()) if settings.server else None
