"""Requests as values: what to send, and how to parse the answer. Built by pure functions, sent by a driver.

A client method returns an ``Ask``, or a ``Plan`` (``driver``) if it needs several requests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import quote

import httpx
from pydantic import BaseModel, ValidationError

from seatrial.errors import SeatrialError
from seatrial.shapes.answers import Listing

PREFIX = "/api/v1"
type Parameter = str | int | bool | None
type Parameters = Mapping[str, Parameter | Sequence[str]]


@dataclass(frozen=True)
class Sent:
    """Upload progress of one archive."""

    filename: str
    sent: int
    size: int


type Progress = Callable[[Sent], None]


@dataclass(frozen=True)
class Archive:
    """A file to upload."""

    filename: str
    path: Path
    progress: Progress | None = None


@dataclass(frozen=True)
class Ask[Answer]:
    """One request."""

    method: str
    path: str
    """Below ``/api/v1``."""
    read: Callable[[httpx.Response], Answer] = field(repr=False)
    params: Parameters = field(default_factory=dict)
    body: BaseModel | None = None
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """Not in ``repr``: they may contain keys."""
    archive: Archive | None = None
    into: Path | None = None
    """Stream the answer into this file."""
    repeatable: bool | None = None
    """Whether the request may be sent twice. ``None``: depends on the method."""

    is_long: bool = False
    """Whether the service may take minutes to answer."""

    @property
    def may_repeat(self) -> bool:
        return self.method in ("GET", "PUT", "DELETE") if self.repeatable is None else self.repeatable


@dataclass(frozen=True)
class Paged[Item]:
    """A paginated list. ``first`` requests the first page."""

    first: Ask[Listing[Item]]

    def page(self, cursor: str) -> Ask[Listing[Item]]:
        return replace(self.first, params={**self.first.params, "cursor": cursor})


@dataclass(frozen=True)
class Following:
    """A stream of events after the message with this id."""

    path: str
    params: Parameters
    after: str = ""


def reads[Shape: BaseModel](shape: type[Shape]) -> Callable[[httpx.Response], Shape]:
    """Parses the answer as this model."""

    def read(answer: httpx.Response) -> Shape:
        try:
            return shape.model_validate_json(answer.content)
        except ValidationError as error:
            raise SeatrialError(
                f"{answer.request.url} did not answer like a Seatrial service of this version.",
                fix="Check the address, and that both sides use the same version.",
            ) from error

    return read


def nothing(answer: httpx.Response) -> None:
    """For answers without a body."""


def given(**params: Parameter | Sequence[str]) -> Parameters:
    """Parameters that are not ``None``."""
    return {name: value for name, value in params.items() if value is not None}


def place(*parts: object) -> str:
    """A path with quoted parts, so that no part can change the route. Slashes in file paths are kept."""
    return "".join(f"/{quote(str(part), safe='/:@')}" for part in parts)


def provider_keys(keys: Mapping[str, str] | None) -> tuple[tuple[str, str], ...]:
    """Provider keys are sent only as headers, which are not logged."""
    return tuple(("X-Provider-Key", f"{name}={value}") for name, value in (keys or {}).items())
