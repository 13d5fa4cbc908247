"""Users of a sandbox, read from its own files for each command."""

from __future__ import annotations

import os
from dataclasses import dataclass

from seatrial.sandboxes.host.in_root import SandboxRoot

_PASSWD = "/etc/passwd"  # noqa: S105
_GROUP = "/etc/group"
SIZE_LIMIT = 1 << 20
_GROUPS_LIMIT = 1024


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


def find_account(root: SandboxRoot, wanted: str | int | None) -> Account:
    """A user by ``name``, ``uid``, ``name:group`` or ``uid:gid``, as Docker reads them; root for nothing."""
    return account_in(_text(root, _PASSWD), _text(root, _GROUP), wanted)


def account_in(passwd: str, group_file: str, wanted: str | int | None) -> Account:
    """The same from the files' text, which belongs to the sandbox: lines that make no sense are passed over."""
    user, _, group = str(wanted if wanted not in (None, "") else 0).partition(":")
    users, groups = _rows(passwd, 6, (2, 3)), _rows(group_file, 4, (2,))
    row = next((row for row in users if user in (row[0], row[2])), None)
    if row is None and not user.isdecimal():
        raise UnknownUser(f"unable to find user {user}: no matching entries in passwd file")
    uid = int(row[2]) if row else int(user)
    gid = int(row[3]) if row else 0
    if group:
        gid = _group_id(group, groups)
    name = row[0] if row else ""
    extra = [int(entry[2]) for entry in groups if name and not group and name in entry[3].split(",")]
    return Account(uid, gid, tuple(extra[:_GROUPS_LIMIT]), (row[5] if row else "") or "/")


def _group_id(group: str, groups: list[list[str]]) -> int:
    for row in groups:
        if group in (row[0], row[2]):
            return int(row[2])
    if group.isdecimal():
        return int(group)
    raise UnknownUser(f"unable to find group {group}: no matching entries in group file")


def _rows(text: str, width: int, numbers: tuple[int, ...]) -> list[list[str]]:
    rows = [line.split(":") for line in text.splitlines()]
    return [row for row in rows if len(row) >= width and all(_is_number(row[index]) for index in numbers)]


def _is_number(text: str) -> bool:
    return len(text) <= 10 and text.isascii() and text.isdecimal() and int(text) < 1 << 32


def _text(root: SandboxRoot, path: str) -> str:
    """Empty if there is no such file, or something else in its place."""
    try:
        with root.file(path) as file:
            return os.read(file, SIZE_LIMIT).decode(errors="replace")
    except OSError:
        return ""
