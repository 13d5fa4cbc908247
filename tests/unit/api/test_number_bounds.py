"""Every number that a caller may send has a lower and an upper bound, so that none overflows in a store."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi import FastAPI
from pydantic import BaseModel, Field

from seatrial.api.app import create_app
from seatrial.settings import Settings
from tests.described_numbers import described_numbers


def unbounded(document: dict[str, Any]) -> list[str]:
    return [str(number) for number in described_numbers(document) if not number.is_bounded]


def test_every_number_of_a_request_has_bounds() -> None:
    document = create_app(Settings()).openapi()
    found = [str(number) for number in described_numbers(document)]
    assert "GET /api/v1/jobs query:limit" in found
    assert "POST /api/v1/jobs body:selection.seed" in found
    assert "POST /api/v1/jobs/{job_id}/retry body:trials.[]" in found
    assert unbounded(document) == []


class Leaf(BaseModel):
    count: int
    size: float | None = Field(default=None, ge=0)
    fine: int = Field(default=1, ge=1, le=9)


class Tree(BaseModel):
    leaves: list[Leaf] = []
    named: dict[str, int] = {}
    pair: tuple[int, str] | None = None
    below: Tree | None = None


@pytest.mark.parametrize("method", ["get", "post"])
def test_a_forgotten_bound_is_found_wherever_it_is(method: str) -> None:
    app = FastAPI()

    async def route(number: int, page: int | None = None, many: str = "") -> None: ...

    async def with_body(number: int, tree: Tree) -> None: ...

    app.add_api_route("/{number}", route if method == "get" else with_body, methods=[method])
    places = {
        "get": ["path:number", "query:page"],
        "post": [
            *("path:number", "body:leaves.[].count", "body:leaves.[].size"),
            *("body:named.{}", "body:pair.[]"),
        ],
    }
    assert unbounded(app.openapi()) == [f"{method.upper()} /{{number}} {place}" for place in places[method]]
