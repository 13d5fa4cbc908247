"""Descriptors that turn request functions into methods: a ``Client`` returns the answer, an ``AsyncClient`` an
awaitable.

Each method is written once; its type follows from the driver of the group.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from functools import update_wrapper
from typing import Any, Self, overload

from seatrial.client.ask import Ask, Following, Paged, Plan
from seatrial.client.driver import AsyncDriver
from seatrial.client.messages import Message
from seatrial.client.sync_driver import SyncDriver


class Group[Driver]:
    """Related methods: ``client.jobs``, ``client.tasks``, …"""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver


class Verb[**P, Answer]:
    """A method with one answer."""

    def __init__(self, describe: Callable[P, Ask[Answer] | Plan[Answer]]) -> None:
        self._describe = describe
        self.__doc__ = describe.__doc__

    @overload
    def __get__(self, group: None, owner: type) -> Self: ...
    @overload
    def __get__(self, group: Group[SyncDriver], owner: type) -> Callable[P, Answer]: ...
    @overload
    def __get__(self, group: Group[AsyncDriver], owner: type) -> Callable[P, Coroutine[Any, Any, Answer]]: ...
    def __get__(self, group: Group[Any] | None, owner: type) -> Any:
        return self if group is None else _bound(self._describe, group.driver.run)


class ListVerb[**P, Item]:
    """A method that returns a list, fetched page by page."""

    def __init__(self, describe: Callable[P, Paged[Item]]) -> None:
        self._describe = describe
        self.__doc__ = describe.__doc__

    @overload
    def __get__(self, group: None, owner: type) -> Self: ...
    @overload
    def __get__(self, group: Group[SyncDriver], owner: type) -> Callable[P, Iterator[Item]]: ...
    @overload
    def __get__(self, group: Group[AsyncDriver], owner: type) -> Callable[P, AsyncIterator[Item]]: ...
    def __get__(self, group: Group[Any] | None, owner: type) -> Any:
        return self if group is None else _bound(self._describe, group.driver.items)


class StreamVerb[**P]:
    """A method that returns messages. It survives dropped connections and restarts of the service."""

    def __init__(self, describe: Callable[P, Following]) -> None:
        self._describe = describe
        self.__doc__ = describe.__doc__

    @overload
    def __get__(self, group: None, owner: type) -> Self: ...
    @overload
    def __get__(self, group: Group[SyncDriver], owner: type) -> Callable[P, Iterator[Message]]: ...
    @overload
    def __get__(self, group: Group[AsyncDriver], owner: type) -> Callable[P, AsyncIterator[Message]]: ...
    def __get__(self, group: Group[Any] | None, owner: type) -> Any:
        return self if group is None else _bound(self._describe, group.driver.follow)


def _bound(describe: Callable[..., Any], carry_out: Callable[[Any], Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        return carry_out(describe(*args, **kwargs))

    return update_wrapper(call, describe)
