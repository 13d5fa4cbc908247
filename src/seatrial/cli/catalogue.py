"""``seatrial agents`` and ``seatrial models``: what can be named, answered without importing Harbor or LiteLLM."""

from __future__ import annotations

from typing import Annotated

import typer

JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]


def agents(as_json: JsonFlag = False) -> None:
    """List the agents that can be named; your own goes by import path, pkg.mod:Class."""
    from seatrial.cli.session import print_json
    from seatrial.domain.catalogue import AGENTS

    if as_json:
        print_json([agent.model_dump(mode="json") for agent in AGENTS])
        return
    for agent in AGENTS:
        typer.echo(f"{agent.name:<20} {agent.description}")


def models(as_json: JsonFlag = False) -> None:
    """List known models. Any other LiteLLM name works too; scripted/<script> needs no key."""
    from seatrial.cli.session import print_json
    from seatrial.domain.catalogue import MODELS, keys_for

    if as_json:
        print_json([{**model.model_dump(mode="json"), "keys": keys_for(model.id)} for model in MODELS])
        return
    for model in MODELS:
        keys = " or ".join(keys_for(model.id)) or "no key"
        typer.echo(f"{model.id:<48} {model.name:<28} {keys}")
