"""How a function that describes a request becomes a method: on a ``Client`` it answers, on an ``AsyncClient`` it is
awaited. Each verb is written once; types follow from the driver of the group that it is called on.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from functools import update_wrapper
from typing import Any, Self, overload

from seatrial.client.ask import Ask, Following, Paged, Plan
from seatrial.client.async_driver import AsyncDriver
from seatrial.client.messages import Message
from seatrial.client.sync_driver import SyncDriver


class Group[Driver]:
    """Verbs that belong together: ``client.jobs``, ``client.tasks``, …"""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver


class Verb[**P, Answer]:
    """One answer."""

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
    """Every item of a list, page by page as they are needed."""

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
    """Messages as they come, through dropped connections and restarts of the service."""

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
