"""Puts a kit into a sandbox in place of the agent's own installation.

The runner calls ``AgentKits.fit`` before the sandbox starts and ``FittedKit.hand_to`` with Harbor's agent. The agent's
``setup`` then finds its program without any download: the kit is lent to the sandbox at ``KIT_DIR``, read-only, and
linked where Harbor's commands look for it. Everything else of Harbor's class stays as it is.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from pydantic import ValidationError

from seatrial.agents.kits.kit import Kit
from seatrial.agents.kits.own_loader import KIT_DIR
from seatrial.agents.kits.recipes import Recipe
from seatrial.agents.kits.shelf import KitShelf, ReadyKit
from seatrial.domain.frozen import Frozen
from seatrial.errors import InvalidInput, SandboxFault, SetupProblem, StoreUnavailable

_log = logging.getLogger(__name__)
Pin = Callable[[int, str, str], Awaitable[str]]
"""Stores a text for a job under a name, unless there is one already. Returns the stored one."""

_PINS_REMEMBERED = 1000
_LINK = """
test -x {kit}/bin/{program} || exit 1
command -v bash >/dev/null 2>&1 || ln -sf {kit}/bin/bash /bin/bash
mkdir -p /usr/local/bin
command -v stdbuf >/dev/null 2>&1 || ln -sf {kit}/bin/stdbuf /usr/local/bin/stdbuf
rm -rf /usr/local/bin/{program}
ln -s {kit}/bin/{program} /usr/local/bin/{program}
"""
_PRELUDE = '{{ test -e {file} || {{ mkdir -p "$(dirname {file})" && printf "nvm() {{ :; }}\\n" > {file}; }}; }}'
_CHECK = """
if test -e ~/.local/bin/{program}; then ln -sf {kit}/bin/{program} ~/.local/bin/{program}; fi
{preludes}
{after}
export PATH="$HOME/.local/bin:$PATH"
if test -s ~/.nvm/nvm.sh; then . ~/.nvm/nvm.sh; fi
test "$(command -v {program})" -ef {kit}/bin/{program} || echo "$(command -v {program})"
"""


class PinnedKit(Frozen):
    """What a job uses, whenever it is resumed."""

    version: str
    digest: str = ""


class Borrower(Protocol):
    """The part of a sandbox that is used here."""

    def type(self) -> str: ...

    async def upload_dir(self, source_dir: Any, target_dir: str) -> None: ...

    async def exec(self, command: str, *, user: str | int | None = None) -> Any: ...


@dataclass(slots=True)
class FittedKit:
    """The kit of one try."""

    recipe: Recipe
    ready: ReadyKit
    notes: list[str] = field(default_factory=list)
    """For the trial's lock."""
    is_copied: bool = False
    """Whether a copy goes into sandboxes that cannot borrow it, also into remote ones."""
    is_used: bool = False

    @property
    def kit(self) -> Kit:
        return self.ready.kit

    def hand_to(self, agent: Any) -> None:
        """Replaces the installation of Harbor's agent."""
        own = agent.install

        async def install(environment: Any) -> None:
            if not await self.put_into(environment):
                self.notes.append("agent kit: this sandbox cannot borrow it, so the agent was installed")
                await own(environment)
                return
            self.is_used = True
            agent._version = self.kit.version  # otherwise Harbor would start the program to ask for it

        agent.install = install

    async def put_into(self, sandbox: Borrower) -> bool:
        """Lends the kit and links it. False if this sandbox cannot have it."""
        if not await self._lent(sandbox):
            return False
        program, kit = self.recipe.program, KIT_DIR
        linked = await sandbox.exec(_LINK.format(kit=kit, program=program), user="root")
        if linked.return_code != 0:
            said = f"{linked.stdout or ''}{linked.stderr or ''}".strip()
            raise SandboxFault(f"The kit of {self.kit.agent} could not be linked in the sandbox: {said[-300:]}")
        preludes = "\n".join(_PRELUDE.format(file=file) for file in self.recipe.preludes)
        check = _CHECK.format(kit=kit, program=program, preludes=preludes, after=self.recipe.after)
        found = await sandbox.exec(check)
        other = (found.stdout or "").strip().splitlines()
        if other:
            self.notes.append(f"agent kit: the image's own {program} comes first: {other[-1][:200]}")
        return True

    async def _lent(self, sandbox: Borrower) -> bool:
        place, tree = str(KIT_DIR), self.ready.tree
        lend = getattr(sandbox, "lend", None)  # only our own sandboxes have it
        if lend is not None and await lend(tree, place):
            return True
        # The image may have something in this place: a link, or files that would pass for the kit.
        above = str(KIT_DIR.parent)
        await sandbox.exec(f"test -d {above} -a ! -L {above} || rm -rf {above}; rm -rf {place}", user="root")
        if lend is not None and await lend(tree, place):
            return True
        if not self.is_copied and sandbox.type() != "oci":
            return False
        await sandbox.upload_dir(tree, place)
        return True


class AgentKits:
    """One per worker."""

    def __init__(self, shelf: KitShelf, pin: Pin | None = None) -> None:
        self._shelf = shelf
        self._pin = pin
        self._pins: dict[tuple[int, str], PinnedKit] = {}

    @asynccontextmanager
    async def fit(self, agent: str, version: str | None, job_id: int) -> AsyncIterator[FittedKit | str]:
        """The kit for a try of this job's agent, kept while the block lasts; or why there is none."""
        recipe = self._shelf.recipes.get(agent)
        if recipe is None:
            yield ""
            return
        try:
            ready, note = await self._pinned(recipe, version, job_id)
        except (SetupProblem, InvalidInput) as problem:
            _log.warning("No kit for %s: %s", agent, problem)
            yield f"agent kit: {problem.message[:300]}"
            return
        with self._shelf.hold(ready):
            yield FittedKit(recipe, ready, [note] if note else [])

    async def _pinned(self, recipe: Recipe, version: str | None, job_id: int) -> tuple[ReadyKit, str]:
        """The job's kit. Its first try decides which that is."""
        name = f"kit {recipe.agent}@{version or recipe.usual}"
        known = await self._known(job_id, name)
        ready = await self._shelf.get(recipe.agent, known.version if known is not None else version)
        mine = PinnedKit(version=ready.kit.version, digest=ready.kit.digest)
        if known is None:
            known = await self._known(job_id, name, mine) or mine
        if known.version != mine.version:  # another worker was first
            ready = await self._shelf.get(recipe.agent, known.version)
        if known.digest != ready.kit.digest:
            return ready, f"agent kit: this worker's has another content than the job's first, {known.digest}"
        return ready, ""

    async def _known(self, job_id: int, name: str, mine: PinnedKit | None = None) -> PinnedKit | None:
        if self._pin is None:
            return mine
        if (job_id, name) not in self._pins:
            try:
                known = _read_pin(await self._pin(job_id, name, mine.model_dump_json() if mine is not None else ""))
            except StoreUnavailable:  # the trial need not wait for it; the next one records it
                return mine
            if known is None:
                return None
            while len(self._pins) >= _PINS_REMEMBERED:
                del self._pins[next(iter(self._pins))]
            self._pins[job_id, name] = known
        return self._pins[job_id, name]


def _read_pin(text: str) -> PinnedKit | None:
    try:
        return PinnedKit.model_validate_json(text) if text else None
    except ValidationError:
        return None
