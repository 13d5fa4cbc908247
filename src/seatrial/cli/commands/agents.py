"""``seatrial agents``: the agents, and the kits from which they run."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from seatrial.cli.backend.session import print_json, read_settings, refuse_server
from seatrial.cli.commands import catalogue
from seatrial.cli.options import AsJson, DryRun
from seatrial.cli.plain_help import Commands
from seatrial.cli.view.columns import Column, print_table
from seatrial.cli.view.say import say

if TYPE_CHECKING:
    from seatrial.agents.kits.kit import Kit
    from seatrial.agents.kits.layers import AgentLayers, Layer
    from seatrial.agents.kits.shelf import KitShelf, ReadyKit

_KITS = (
    Column("agent"),
    Column("version"),
    Column("arch", rank=4),
    Column("libc", rank=3),
    Column("size", right=True),
    Column("digest", rank=2),
    Column("last used", rank=1),
)
app = Commands(
    help="List the agents, and manage the kits from which they run. Use your own by import path, pkg.mod:Class.",
    invoke_without_command=True,
)
kits = Commands(help="List agent kits: agents with their runtime, mounted into any image.", invoke_without_command=True)
app.add_typer(kits, name="kits")


@app.callback()
def agents(context: typer.Context, as_json: AsJson = False) -> None:
    """List the agents: kits that are ready here, keys, formats of model calls, versions that our tests prove.

    Use your own by import path, pkg.mod:Class."""
    if context.invoked_subcommand is None:
        catalogue.agents(as_json)


@kits.callback()
def list_kits(context: typer.Context, as_json: AsJson = False) -> None:
    """List the kits of this machine, the most recently used first."""
    refuse_server("agents kits")
    if context.invoked_subcommand is not None:
        return
    found, layers = _shelf().ready(), [layer for _, layer in _layers().kept()]
    if as_json:
        print_json([*map(_as_json, found), *(layer.model_dump(mode="json") for layer in layers)])
    elif not found and not layers:
        say("No kits. Trials build what they need; build one now with: seatrial agents kits build AGENT")
    else:
        print_table(_KITS, [*map(_cells, found), *map(_layer_cells, layers)])


@kits.command()
def build(
    names: Annotated[list[str], typer.Argument(metavar="AGENT[@VERSION]", help="codex, claude-code@2.1.0, …")],
) -> None:
    """Build the kits of agents before trials need them."""
    shelf = _shelf()

    async def work() -> None:
        for name in names:
            agent, _, version = name.partition("@")
            ready = await shelf.get(agent, version or None)
            kit = ready.kit
            say(f"{kit.agent} {kit.version}  {kit.arch} {kit.libc}  {_size(kit.size_bytes)}  {kit.digest}")

    asyncio.run(work())


@kits.command()
def prune(
    everything: Annotated[bool, typer.Option("--all", help="Remove every kit that no sandbox uses.")] = False,
    dry_run: DryRun = False,
) -> None:
    """Remove the least recently used kits and kept installations while they take more space than SEATRIAL_KITS_GB."""
    from seatrial.cli.view.figures import plural

    removed = asyncio.run(_shelf().prune(everything=everything, dry_run=dry_run))
    layers = asyncio.run(_layers().prune(everything=everything, dry_run=dry_run))
    kinds: list[Kit | Layer] = [*(ready.kit for ready in removed), *layers]
    for gone in kinds:
        say(f"{gone.agent} {gone.version}  {_size(gone.size_bytes)}")
    counted = f"{plural(len(removed), 'kit')} and {plural(len(layers), 'layer')}"
    say(f"{counted} {'would be removed' if dry_run else 'removed'}")


def _shelf() -> KitShelf:
    from seatrial.wiring import kits_of

    return kits_of(read_settings())


def _layers() -> AgentLayers:
    from seatrial.wiring import layers_of

    return layers_of(read_settings())


def _layer_cells(layer: Layer) -> tuple[str, ...]:
    """An installation that is kept for one image."""
    made = layer.made_at.astimezone().strftime("%Y-%m-%d %H:%M")
    place = f"on {layer.image[7:19]} ({layer.sandbox})"
    return layer.agent, layer.version, "", place, _size(layer.size_bytes), layer.digest[7:19], made


def _cells(ready: ReadyKit) -> tuple[str, ...]:
    kit = ready.kit
    used = ready.used_at.astimezone().strftime("%Y-%m-%d %H:%M") if ready.used_at else "never"
    return kit.agent, kit.version, kit.arch, kit.libc, _size(kit.size_bytes), kit.digest[7:19], used


def _as_json(ready: ReadyKit) -> dict[str, object]:
    return {**ready.kit.model_dump(mode="json"), "used_at": ready.used_at.isoformat() if ready.used_at else None}


def _size(size: int) -> str:
    return f"{size / 1e9:.2f} GB" if size >= 1e9 else f"{size / 1e6:.1f} MB"
