"""Descriptors that turn request functions into methods: a ``Client`` returns the answer, an ``AsyncClient`` an
awaitable.

Each method is written once; its type follows from the driver of the group.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from functools import update_wrapper
from typing import Any, Self, overload

from seatrial.client.ask import Ask, Following, Paged
from seatrial.client.driver import Driver, Plan, SyncDriver
from seatrial.client.messages import Message


class Group[D]:
    """Related methods: ``client.jobs``, ``client.tasks``, …"""

    def __init__(self, driver: D) -> None:
        self.driver = driver


class Verb[**P, Blocking, Awaited]:
    """A method: ``Blocking`` is what a ``Client`` returns, ``Awaited`` what an ``AsyncClient`` returns."""

    def __init__(self, describe: Callable[P, Any], carry_out: str) -> None:
        """``carry_out`` is the method of the driver that executes the described request."""
        self._describe = describe
        self._carry_out = carry_out
        self.__doc__ = describe.__doc__

    @overload
    def __get__(self, group: None, owner: type) -> Self: ...
    @overload
    def __get__(self, group: Group[SyncDriver], owner: type) -> Callable[P, Blocking]: ...
    @overload
    def __get__(self, group: Group[Driver], owner: type) -> Callable[P, Awaited]: ...
    def __get__(self, group: Group[Any] | None, owner: type) -> Any:
        if group is None:
            return self

        def call(*args: Any, **kwargs: Any) -> Any:
            return getattr(group.driver, self._carry_out)(self._describe(*args, **kwargs))

        return update_wrapper(call, self._describe)


def verb[**P, Answer](
    describe: Callable[P, Ask[Answer] | Plan[Answer]],
) -> Verb[P, Answer, Coroutine[Any, Any, Answer]]:
    """A method with one answer."""
    return Verb(describe, "run")


def list_verb[**P, Item](describe: Callable[P, Paged[Item]]) -> Verb[P, Iterator[Item], AsyncIterator[Item]]:
    """A method that returns a list, fetched page by page."""
    return Verb(describe, "items")


def stream_verb[**P](describe: Callable[P, Following]) -> Verb[P, Iterator[Message], AsyncIterator[Message]]:
    """A method that returns messages. It survives dropped connections and restarts of the service."""
    return Verb(describe, "follow")
