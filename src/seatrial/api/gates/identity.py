"""Finds the holder of a token or a session. Called by the guard for every request, and by sign-in.

The session cookie is a sealed reference to the token's fingerprint: it reveals nothing, survives a restart, and ends
with its token.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import math
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from seatrial.domain.token import Role, Token, fingerprint
from seatrial.engine.clock import Clock
from seatrial.engine.recent import RecentlyUsed
from seatrial.errors import SeatrialError, SetupProblem
from seatrial.ports.seal import Seal
from seatrial.ports.store import TokenStore

log = logging.getLogger(__name__)

SESSION_LIFE = timedelta(days=7)
_NOTE_EVERY = timedelta(minutes=1)
_REMEMBERED = 4096
_LONGEST_SECRET = 512


@dataclass(frozen=True)
class Caller:
    """The authenticated caller."""

    name: str
    role: Role
    token_id: int | None = None


@dataclass(frozen=True)
class Session:
    """Content of the session cookie."""

    id: str
    fingerprint: str
    until: datetime


class TooManyFailures(SeatrialError):
    """Too many wrong tokens from this address."""

    def __init__(self, wait_sec: float) -> None:
        self.headers = {"Retry-After": str(math.ceil(wait_sec))}
        super().__init__(fix=f"Try again in {wait_sec:.0f} s.")


class Identities:
    def __init__(self, tokens: TokenStore, seal: Seal, clock: Clock, failures: FailureLimit | None = None) -> None:
        self._tokens = tokens
        self._seal = seal
        self._clock = clock
        self._failures = failures or FailureLimit()
        self._proven: RecentlyUsed[bool] = RecentlyUsed(_REMEMBERED)
        self._ended: RecentlyUsed[bool] = RecentlyUsed(_REMEMBERED)
        self._noted: dict[int, datetime] = {}
        self._notes: set[asyncio.Task[None]] = set()

    async def by_secret(self, secret: str, address: str) -> Caller | None:
        """The holder of the token; ``None`` if it is unknown, expired or revoked. Raises ``TooManyFailures``.

        A token that was valid before is not slowed down by others that guess from the same address.
        """
        mark = fingerprint(secret[:_LONGEST_SECRET])
        wait = self._failures.wait(address)
        if wait and not self._proven.get(mark):
            raise TooManyFailures(wait)
        token = await self._valid(mark)
        if token is None:
            self._failures.failed(address)
            return None
        self._proven.put(mark, True)
        return _caller(token)

    async def by_session(self, cookie: str) -> Caller | None:
        session = self._read(cookie)
        if session is None or self._ended.get(session.id) or session.until <= self._clock():
            return None
        token = await self._valid(session.fingerprint)
        return _caller(token) if token is not None else None

    def open_session(self, secret: str) -> str:
        """A cookie for a caller whose token was just verified."""
        until = self._clock() + SESSION_LIFE
        mark = fingerprint(secret[:_LONGEST_SECRET])
        return self._seal.close(json.dumps([secrets.token_urlsafe(16), mark, until.isoformat()]))

    def end_session(self, cookie: str) -> None:
        """Ends it in this process only; revoking the token ends its sessions everywhere."""
        session = self._read(cookie)
        if session is not None:
            self._ended.put(session.id, True)

    async def close(self) -> None:
        """Waits for pending writes."""
        await asyncio.gather(*self._notes, return_exceptions=True)

    def _read(self, cookie: str) -> Session | None:
        try:
            name, mark, until = json.loads(self._seal.open(cookie))
            return Session(name, mark, datetime.fromisoformat(until))
        except (SetupProblem, ValueError):
            return None

    async def _valid(self, mark: str) -> Token | None:
        token = await self._tokens.get(mark)
        now = self._clock()
        if token is None or not hmac.compare_digest(token.fingerprint, mark) or not token.is_valid(now):
            return None
        self._note_use(token, now)
        return token

    def _note_use(self, token: Token, now: datetime) -> None:
        """At most once a minute, in the background."""
        last = self._noted.get(token.id, token.used_at)
        if last is not None and now - last < _NOTE_EVERY:
            return
        self._noted[token.id] = now
        note = asyncio.create_task(self._write_use(token.id, now))
        self._notes.add(note)
        note.add_done_callback(self._notes.discard)

    async def _write_use(self, token_id: int, now: datetime) -> None:
        try:
            await self._tokens.note_use(token_id, now)
        except SeatrialError as error:
            log.warning("Could not save the last use of token %d: %s", token_id, error)


def _caller(token: Token) -> Caller:
    return Caller(token.name, token.role, token.id)


class FailureLimit:
    """Counts failures by address. Memory is bounded: the address with the oldest failure is dropped first."""

    def __init__(
        self,
        limit: int = 20,
        window_sec: float = 60.0,
        remembered: int = 4096,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limit = limit
        self._window = window_sec
        self._remembered = remembered
        self._clock = clock
        self._failures: OrderedDict[str, tuple[int, float]] = OrderedDict()

    def wait(self, address: str) -> float:
        """Seconds until this address may try again; 0 if it may now."""
        count, since = self._failures.get(address, (0, 0.0))
        left = since + self._window - self._clock()
        return left if count >= self._limit and left > 0 else 0.0

    def failed(self, address: str) -> None:
        now = self._clock()
        count, since = self._failures.pop(address, (0, now))
        self._failures[address] = (count + 1, since) if now < since + self._window else (1, now)
        if len(self._failures) > self._remembered:
            self._failures.popitem(last=False)
