"""Users of a docker sandbox, read from its own files.

The engine resolves names for the agent's commands, but not for the verifier's. ``sandbox_container`` asks before each
of those, since the agent may have made users.
"""

from __future__ import annotations

from seatrial.sandboxes.docker.client import EngineClient
from seatrial.sandboxes.docker.entry import read_entry
from seatrial.sandboxes.host.accounts import Account, UnknownUser

_SIZE_LIMIT = 1 << 20


async def find_account(engine: EngineClient, container: str, wanted: str) -> Account:
    """A user by ``name``, ``uid``, ``name:group`` or ``uid:gid``, as Docker reads them; root for nothing."""
    passwd = await _content(engine, container, "/etc/passwd")
    group = await _content(engine, container, "/etc/group")
    return account_in(passwd, group, wanted)


def account_in(passwd: str, group: str, wanted: str) -> Account:
    """The same from the files' text, which belongs to the sandbox: lines that make no sense are passed over."""
    user, _, group_name = (wanted or "0").partition(":")
    users, groups = _rows(passwd, 6, (2, 3)), _rows(group, 4, (2,))
    row = next((row for row in users if user in (row[0], row[2])), None)
    if row is None and not user.isdecimal():
        raise UnknownUser(f"unable to find user {user}: no matching entries in passwd file")
    name, uid = (row[0], int(row[2])) if row else ("", int(user))
    gid = int(row[3]) if row else 0
    extra = tuple(int(entry[2]) for entry in groups if name and not group_name and name in entry[3].split(","))
    if group_name:
        gid = _group_id(group_name, groups)
    return Account(uid, gid, extra, (row[5] if row else "") or "/")


def _group_id(wanted: str, groups: list[list[str]]) -> int:
    for row in groups:
        if wanted in (row[0], row[2]):
            return int(row[2])
    if wanted.isdecimal():
        return int(wanted)
    raise UnknownUser(f"unable to find group {wanted}: no matching entries in group file")


def _rows(text: str, width: int, numbers: tuple[int, ...]) -> list[list[str]]:
    rows = [line.split(":") for line in text.splitlines()]
    return [row for row in rows if len(row) >= width and all(row[index].isdecimal() for index in numbers)]


async def _content(engine: EngineClient, container: str, path: str) -> str:
    """Empty if there is no such file, or a link or something else in its place."""
    entry = await read_entry(engine, container, path, _SIZE_LIMIT)
    return entry.content.decode(errors="replace") if entry is not None and entry.is_file else ""
