"""Fifty trials on five workers race for one job's budget, over HTTP through real gates and a real store.

Each trial calls until it is refused. Answers are up to ten times as long as usual, so what a call will cost is not
known before. What counts is the service's own bill: it may exceed the budget by at most one call's price, and the
calls and tokens in the store must equal it.
"""

from __future__ import annotations

import asyncio
import json
import random
from contextlib import AsyncExitStack

from benchmarks.gate_process import PRICE, priced_route, submitted
from benchmarks.model_service import ModelService, Seen
from benchmarks.place import Place
from benchmarks.row import Row
from seatrial.adapters.store_sql.migrate import upgrade
from seatrial.domain.model_calls.budget import Amount, Budget, Cap, Scope
from seatrial.domain.model_calls.model_call import CallUsage
from seatrial.engine.budgets.slices import EVERY_SEC, Budgets
from seatrial.engine.budgets.trial_budget import TrialBudget
from seatrial.gateway.gate import Gate
from seatrial.gateway.routes import Routes
from seatrial.gateway.spending import TrialCallBudget
from seatrial.gateway.trial_calls import TrialCalls
from seatrial.settings import Settings
from seatrial.testing.postgres import PostgresServer
from seatrial.wiring import Installation, open_installation
from seatrial.wiring.worker import budgets_of

_WORKERS, _TRIALS = 5, 50
_CAP_USD = 4.0
_LONGEST = 4000
_BODY = {"model": "m", "messages": [{"role": "user", "content": "x" * 4000}], "max_tokens": _LONGEST}


async def measure(place: Place) -> list[Row]:
    rows = await _raced(place, "SQLite", "")
    with PostgresServer() as server:
        url = await server.create_database("race")
        await upgrade(url)
        return rows + await _raced(place, "PostgreSQL", url)


async def _raced(place: Place, name: str, url: str) -> list[Row]:
    budget = Budget(job=Cap(dollars=_CAP_USD / place.count(1, 4)))
    home = place.folder("race")
    settings = [Settings(home=home, sandbox="oci", database_url=url) for _ in range(_WORKERS)]
    async with AsyncExitStack() as stack:
        installed = [await stack.enter_async_context(open_installation(each)) for each in settings]
        job_id = await submitted(installed[0], budget)
        service = await stack.enter_async_context(ModelService(0.05, 40, chance=random.Random(1)))
        refused = await asyncio.gather(
            *(_worker(each, service, job_id, budget, number * 1000) for number, each in enumerate(installed))
        )
        scope = Scope.of_job(job_id)
        counted = (await installed[0].store.budgets.spending([scope]))[scope.name]
    return _rows(name, budget, service.seen, counted.spent, counted.in_flight, sum(refused))


async def _worker(installation: Installation, service: ModelService, job_id: int, budget: Budget, first: int) -> int:
    """Runs its part of the trials to their ends; how many of them were refused."""
    budgets, folder = budgets_of(installation), installation.settings.home / "tries"
    beating = asyncio.create_task(_beat(budgets))
    routes = Routes([priced_route(f"http://127.0.0.1:{service.port}/v1")])
    async with Gate() as gate:

        async def trial(number: int) -> bool:
            place = folder / f"{number}"
            place.mkdir(parents=True)
            calls = TrialCalls(place)
            with TrialBudget(budgets, number, 1, job_id, budget) as opened:
                async with gate.open_for(calls, None, routes, TrialCallBudget(opened)) as door:
                    while await _calls(int(door.url.rpartition(":")[2]), streams=number % 2 == 1):
                        pass
            calls.close()
            return opened.refused is not None

        found = await asyncio.gather(*(trial(first + number) for number in range(1, _TRIALS // _WORKERS + 1)))
    beating.cancel()
    await budgets.leave()
    return sum(found)


async def _calls(port: int, *, streams: bool) -> bool:
    """Whether the call was answered."""
    body = json.dumps({**_BODY, "stream": streams}).encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode())
        writer.write(body)
        answer = await reader.read(-1)
    finally:
        writer.close()
    if not answer.startswith((b"HTTP/1.1 200", b"HTTP/1.1 402")):
        raise RuntimeError(f"A call failed: {answer[:300]!r}")
    return answer.startswith(b"HTTP/1.1 200")


async def _beat(budgets: Budgets) -> None:
    while True:
        await budgets.sync()
        await asyncio.sleep(EVERY_SEC)


def _rows(name: str, budget: Budget, seen: Seen, spent: Amount, in_flight: Amount, refused: int) -> list[Row]:
    cap = budget.job.dollars or 0.0
    billed = _price(seen.input_tokens, seen.output_tokens)
    over, one_call = max(0.0, billed - cap), _price(len(json.dumps(_BODY)) // 4 + 10, _LONGEST)
    what = f"{_TRIALS} trials on {_WORKERS} workers race for ${cap:g}, {name}"
    equal = spent.calls == seen.calls and spent.tokens == seen.tokens and not in_flight
    return [
        Row(
            f"{what}: over the budget, by the service's own bill",
            f"${over:.4f} (billed ${billed:.4f}, {refused} refused)",
            f"<= one call, ${one_call:.4f}",
            over <= one_call and refused == _TRIALS,
        ),
        Row(
            f"{what}: calls and tokens counted",
            f"{spent.calls:,} and {spent.tokens:,}",
            "equal",
            equal,
            f"by the service {seen.calls:,} and {seen.tokens:,}",
        ),
    ]


def _price(input_tokens: int, output_tokens: int) -> float:
    usage = CallUsage(input_tokens=input_tokens, output_tokens=output_tokens)
    return PRICE.price.cost_of(usage) or 0.0
