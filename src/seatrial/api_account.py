"""The account of the API's process, when root starts the service: who it is, and what it takes to become it.

The API's process answers everybody, so it should own nothing but its home. ``service`` calls ``prepare`` in that
process before it drops its privileges; `seatrial doctor` asks ``look``.
"""

from __future__ import annotations

import logging
import os
import pwd
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from seatrial.errors import SetupProblem
from seatrial.settings import Settings
from seatrial.system.file_owner import NOBODYS_ID, SERVICE_ACCOUNT, Account, owner_of
from seatrial.system.path_view import show_paths
from seatrial.system.privileges import become
from seatrial.system.processes import WorkerName
from seatrial.system.removal import remove_tree
from seatrial.system.take_over import take_over

log = logging.getLogger(__name__)

_DAY_SEC = 86400.0
_PACKAGE = Path(__file__).parent


def prepare(settings: Settings) -> Account | None:
    """Makes the home the account's, and all that the API reads reachable for it. ``None`` if this process keeps its
    user: it is not root, the operator wants root, or, where he said nothing, another account cannot do the work."""
    account, why = look(settings)
    if account is None:
        if why:
            log.warning("The API process keeps the user id of root: %s", why)
        return None
    _give_home(settings, account)
    show_paths(_read_by_api(settings), account)
    return account


def look(settings: Settings) -> tuple[Account | None, str]:
    """The account that the API's process would have; or ``None``, and why it stays root."""
    if os.geteuid() != 0:
        return None, ""
    account = _chosen(settings)
    if account is None:
        return None, "SEATRIAL_API_USER says so."
    why = _obstacle(settings, account)
    if why and settings.api_user:
        raise SetupProblem(f"The API cannot run as {settings.api_user}: {why}", fix="Or unset SEATRIAL_API_USER.")
    return (None, why) if why else (account, "")


def reads_home(settings: Settings) -> None:
    """After the change of account: no path leads to places that it cannot use."""
    if not os.access(tempfile.gettempdir(), os.W_OK | os.X_OK):
        (own := settings.home / "tmp").mkdir(mode=0o700, exist_ok=True)
        tempfile.tempdir = str(own)
    if not os.access(Path.home(), os.X_OK):
        os.environ["HOME"] = str(settings.home)
    for path in filter(None, (settings.tb2_dir, settings.extra_ca_file, _local_registry(settings))):
        if path.exists() and not os.access(path, os.R_OK):
            log.warning("The API process may not read %s.", path)


def _chosen(settings: Settings) -> Account | None:
    wanted = settings.api_user
    if not wanted:
        owner = owner_of(settings.home) if settings.home.is_dir() else None
        return owner or _named(SERVICE_ACCOUNT) or Account(NOBODYS_ID, NOBODYS_ID)
    account = _named(wanted)
    if account is None:
        raise SetupProblem(f"There is no account {wanted}.", fix="Set SEATRIAL_API_USER to a name or a number.")
    return account if account.uid else None


def _named(name: str) -> Account | None:
    try:
        found = pwd.getpwuid(int(name)) if name.isdecimal() else pwd.getpwnam(name)
    except (KeyError, OverflowError):
        return Account(int(name), int(name)) if name.isdecimal() and int(name) < 1 << 31 else None
    return Account(found.pw_uid, found.pw_gid)


def _obstacle(settings: Settings, account: Account) -> str:
    """Why the account cannot do the API's work, with what would help; empty if it can."""
    home = settings.home.resolve()
    if settings.cache.resolve().is_relative_to(home):
        return (
            f"the images in {settings.cache} are below {home}, which it would own. Set SEATRIAL_CACHE to another place."
        )
    for place in (*shared_places(settings), settings.blobs_dir):
        if place.is_dir() and not place.resolve().is_relative_to(home) and place.stat().st_uid != account.uid:
            return f"{place} belongs to somebody else. Give it to user {account.uid} (chown -R); name files by SEATRIAL_BLOBS_URL=file://."
    given = settings.home.is_dir() and settings.home.stat().st_uid == account.uid
    if not given and _in_use(settings.home / "work"):
        return f"trials run in {settings.home}, as root. Start the service again when they have ended."
    return _rehearse(settings, account)


def shared_places(settings: Settings) -> Iterator[Path]:
    """Folders of the database and of files, if they are on this machine and not in the home."""
    for url in (settings.store_url, settings.files_url):
        scheme, _, path = url.partition("://")
        if scheme.startswith("sqlite"):
            yield Path(path.removeprefix("/")).parent  # four slashes begin an absolute path
        elif scheme == "file":
            yield Path(path)


def _in_use(work: Path) -> bool:
    for place in work.iterdir() if work.is_dir() else ():
        name = WorkerName.of_folder(place.name)
        if name is None or name.process.is_dead:
            continue
        if name.process.is_of_this_namespace or place.stat().st_mtime > time.time() - _DAY_SEC:
            return True
    return False


def _rehearse(settings: Settings, account: Account) -> str:
    """Becomes the account in a process of its own, and looks whether it can read what it needs."""
    homes = [settings.home] if settings.home.exists() else []
    told, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            show_paths(_read_by_api(settings), account)
            become(account)
            for path in homes:
                path.stat()
            for path in (_PACKAGE / "__init__.py", Path(os.__file__), Path(sys.executable)):
                path.open("rb").close()
        except Exception as fault:
            os.write(tell, f"it cannot read what it needs: {fault}.".encode()[:1000])
        finally:
            os._exit(0)
    os.close(tell)
    with os.fdopen(told, errors="replace") as said:
        why = said.read()
    os.waitpid(pid, 0)
    return why and f"{why} Put SEATRIAL_HOME and the program into folders that everybody may pass."


def _read_by_api(settings: Settings) -> Iterator[Path]:
    yield settings.home
    yield from shared_places(settings)
    yield from (Path(sys.prefix), Path(sys.base_prefix), _PACKAGE, _PACKAGE.parents[1] / "samples")
    yield from (Path(entry) for entry in sys.path if entry)  # libraries may be anywhere
    yield Path(tempfile.gettempdir())
    for path in (settings.tb2_dir, settings.extra_ca_file, _local_registry(settings)):
        if path is not None:
            yield path


def _local_registry(settings: Settings) -> Path | None:
    return Path(settings.registry) if settings.registry and "://" not in settings.registry else None


def _give_home(settings: Settings, account: Account) -> None:
    home = settings.home
    if home.stat().st_uid == account.uid:
        return
    for name in ("work", "tasks"):  # workers of root have theirs elsewhere from now on; tasks are unpacked again
        remove_tree(home / name)
    left = take_over(home, account)
    log.info("%s belongs to user %s now.", home, account.uid)
    if left:
        log.warning("These files in %s were not given to it: %s", home, ", ".join(sorted(left)[:10]))
