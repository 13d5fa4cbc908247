"""Users of a sandbox, read from its own files. ``command`` asks, in a thread that is inside the sandbox."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

_PASSWD = Path("/etc/passwd")
_GROUP = Path("/etc/group")
_SIZE_LIMIT = 1 << 20


@dataclass(frozen=True, slots=True)
class Account:
    uid: int
    gid: int
    groups: tuple[int, ...]
    home: str

    @property
    def identity(self) -> tuple[int, int, tuple[int, ...]]:
        return self.uid, self.gid, self.groups


class UnknownUser(LookupError):
    """The sandbox has no such user or group."""


def find_account(wanted: str | int | None) -> Account:
    """A user by ``name``, ``uid``, ``name:group`` or ``uid:gid``, as Docker reads them; root for nothing."""
    user, _, group = str(wanted if wanted not in (None, "") else 0).partition(":")
    users, groups = _rows(_PASSWD, 6), _rows(_GROUP, 4)
    row = next((row for row in users if user in (row[0], row[2])), None)
    if row is None and not user.isdecimal():
        raise UnknownUser(f"unable to find user {user}: no matching entries in passwd file")
    uid = int(row[2]) if row else int(user)
    gid = int(row[3]) if row else 0
    if group:
        gid = _group_id(group, groups)
    name = row[0] if row else ""
    extra = [int(entry[2]) for entry in groups if name and not group and name in entry[3].split(",")]
    return Account(uid, gid, tuple(extra), (row[5] if row else "") or "/")


def _group_id(group: str, groups: list[list[str]]) -> int:
    for row in groups:
        if group in (row[0], row[2]):
            return int(row[2])
    if group.isdecimal():
        return int(group)
    raise UnknownUser(f"unable to find group {group}: no matching entries in group file")


def _rows(path: Path, width: int) -> list[list[str]]:
    """Well-formed lines only: the file belongs to the sandbox."""
    try:
        if not path.is_file():
            return []
        with path.open(errors="replace") as file:
            lines = file.read(_SIZE_LIMIT).splitlines()
    except OSError:
        return []
    rows = [line.split(":") for line in lines]
    return [row for row in rows if len(row) >= width and row[2].isdecimal() and (width < 6 or row[3].isdecimal())]
