"""What a read-only link opens: GET of one job or one trial, by an allow-list. Everything else is refused.

The link arrives as ``Authorization: Bearer``, never as a cookie or a part of the address, so that no browser adds it by
itself and no log contains it. What people added to trials (notes, tags, labels) is not shown.
"""

from __future__ import annotations

import hmac
import re
from dataclasses import dataclass
from urllib.parse import parse_qsl

from seatrial.api.gates.identity import FailureLimit, TooManyFailures
from seatrial.domain.link import LINK_PREFIX, Link
from seatrial.domain.numbers import LARGEST_ID
from seatrial.domain.token import fingerprint
from seatrial.engine.clock import Clock
from seatrial.ports.store import LinkStore

_LONGEST_SECRET = 512
_NUMBER = r"([1-9][0-9]{0,18})"
_ITSELF = "/api/v1/shared"
_JOB = re.compile(rf"/api/v1/jobs/{_NUMBER}(/report|/grid|/trials|/results|/trials\.csv)?", re.ASCII)
_TRIAL = re.compile(
    rf"/api/v1/trials/{_NUMBER}(/tests|/files|/logs|/trajectory|/recording|/files/.+|/logs/.+)?", re.ASCII | re.DOTALL
)
_TASK = re.compile(r"/api/v1/tasks/(sha256:[0-9a-f]{64})", re.ASCII)
_TRIAGE = frozenset({"tag", "label", "reviewed", "noted"})
"""Filters that would tell what people added."""


def is_link(secret: str) -> bool:
    return secret.startswith(LINK_PREFIX)


@dataclass(frozen=True)
class LinkAccess:
    links: LinkStore
    clock: Clock
    failures: FailureLimit

    async def find(self, secret: str, address: str) -> Link | None:
        """The link with this secret; ``None`` if it is unknown, expired or revoked. Raises ``TooManyFailures``."""
        mark = fingerprint(secret[:_LONGEST_SECRET])
        link = await self.links.find(mark)
        if link is not None and hmac.compare_digest(link.fingerprint, mark) and link.is_valid(self.clock()):
            return link
        if wait := self.failures.wait(address):
            raise TooManyFailures(wait)
        self.failures.failed(address)
        return None

    async def opens(self, link: Link, path: str, query: bytes) -> bool:
        """The path is compared exactly as the router gets it; what the patterns do not know is closed."""
        if path == _ITSELF:
            return True
        if {name for name, _ in parse_qsl(query.decode("latin-1"), keep_blank_values=True)} & _TRIAGE:
            return False
        if found := _JOB.fullmatch(path):
            return link.trial_id is None and int(found[1]) == link.job_id
        if found := _TRIAL.fullmatch(path):
            return await self._shows_trial(link, int(found[1]))
        if found := _TASK.fullmatch(path):
            return await self.links.uses(link.job_id, link.trial_id, found[1])
        return False

    async def _shows_trial(self, link: Link, trial_id: int) -> bool:
        if link.trial_id is not None:
            return trial_id == link.trial_id
        return trial_id <= LARGEST_ID and await self.links.job_of(trial_id) == link.job_id
