"""Users of a docker sandbox, read from its own files.

The engine resolves names for the agent's commands, but not for the verifier's. ``sandbox_container`` asks before each
of those, since the agent may have made users.
"""

from __future__ import annotations

from seatrial.sandboxes.docker.client import EngineClient
from seatrial.sandboxes.docker.entry import read_entry
from seatrial.sandboxes.host.accounts import SIZE_LIMIT, Account, account_in


async def find_account(engine: EngineClient, container: str, wanted: str) -> Account:
    """A user by ``name``, ``uid``, ``name:group`` or ``uid:gid``, as Docker reads them; root for nothing."""
    passwd = await _content(engine, container, "/etc/passwd")
    group = await _content(engine, container, "/etc/group")
    return account_in(passwd, group, wanted)


async def _content(engine: EngineClient, container: str, path: str) -> str:
    """Empty if there is no such file, or a link or something else in its place."""
    entry = await read_entry(engine, container, path, SIZE_LIMIT)
    return entry.content.decode(errors="replace") if entry is not None and entry.is_file else ""
