"""Requests as values: what to ask for, and how the answer is read. Built by pure functions, sent by a driver.

A verb of the client is a function that gives an ``Ask``, or a ``Plan``: a generator that hands out one step after the
other and is given what came of it. Neither knows whether it is carried out by a thread or by an event loop.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
from pydantic import BaseModel, ValidationError

from seatrial.errors import SeatrialError
from seatrial.shapes.page import Listing

PREFIX = "/api/v1"
type Parameter = str | int | bool | None
type Parameters = Mapping[str, Parameter | Sequence[str]]


@dataclass(frozen=True)
class Sent:
    """How far one archive has been sent."""

    filename: str
    sent: int
    size: int


type Progress = Callable[[Sent], None]


@dataclass(frozen=True)
class Archive:
    """A file that goes up with a request."""

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
    """Not shown: they may hold keys."""
    archive: Archive | None = None
    into: Path | None = None
    """The answer goes into this file, piece by piece."""
    repeatable: bool | None = None
    """Whether sending it twice does no more than sending it once; without an answer, the method says."""

    is_long: bool = False
    """Whether the service may take minutes for its answer."""

    @property
    def may_repeat(self) -> bool:
        return self.method in ("GET", "PUT", "DELETE") if self.repeatable is None else self.repeatable


@dataclass(frozen=True)
class Paged[Item]:
    """A list that comes in pages. ``first`` asks for the first of them."""

    first: Ask[Listing[Item]]

    def page(self, cursor: str) -> Ask[Listing[Item]]:
        return replace(self.first, params={**self.first.params, "cursor": cursor})


@dataclass(frozen=True)
class Following:
    """A stream of events, from after the message with this id on."""

    path: str
    params: Parameters
    after: str = ""


@dataclass(frozen=True)
class Pause:
    seconds: float


@dataclass(frozen=True)
class Work[Answer]:
    """Something to do on this machine that takes a while."""

    call: Callable[[], Answer]


@dataclass(frozen=True)
class Listen:
    """Waits until a stream says ``end``; says whether it did. It may break off before, and does after ``seconds``."""

    to: Following
    seconds: float | None


type Step = Ask[Any] | Pause | Work[Any] | Listen
type Plan[Answer] = Generator[Step, Any, Answer]


def reads[Shape: BaseModel](shape: type[Shape]) -> Callable[[httpx.Response], Shape]:
    """The answer as this shape."""

    def read(answer: httpx.Response) -> Shape:
        try:
            return shape.model_validate_json(answer.content)
        except ValidationError as error:
            raise SeatrialError(
                f"{answer.request.url} did not answer as a Seatrial service of this version does.",
                fix="Check the address, and that both sides have the same version.",
            ) from error

    return read


def nothing(answer: httpx.Response) -> None:
    """For answers without a body."""


def given(**params: Parameter | Sequence[str]) -> Parameters:
    """Those that were named."""
    return {name: value for name, value in params.items() if value is not None}


def place(*parts: object) -> str:
    """A path; what a part holds cannot lead out of its place, but for the folders of a file."""
    return "".join(f"/{quote(str(part), safe='/:@')}" for part in parts)


def provider_keys(keys: Mapping[str, str] | None) -> tuple[tuple[str, str], ...]:
    """Keys of model providers travel in headers and nowhere else: neither logs nor histories hold those."""
    return tuple(("X-Provider-Key", f"{name}={value}") for name, value in (keys or {}).items())
