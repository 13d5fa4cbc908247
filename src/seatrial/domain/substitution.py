"""Variables in text, as compose files write them: ``$NAME``, ``${NAME}``, ``${NAME:-word}``, ``$$``.

Compose files of both task formats and the environment of ``task.toml`` are read with this grammar. A caller says where
values come from and what a missing value means. A unit test compares the grammar with ``docker compose``. Pure.

==================  ==========================================================================
``$$``              a plain ``$``
``$NAME ${NAME}``   the value; the caller decides what a missing one means
``${NAME:-word}``   ``word`` if the value is missing or empty; ``-`` only if it is missing
``${NAME:+word}``   ``word`` if there is a value that is not empty, else nothing; ``+`` if there is one
``${NAME:?word}``   the value is required and must not be empty; ``?`` allows an empty one
==================  ==========================================================================

A word may contain variables. ``$`` before anything else is plain text; ``${`` before anything else is ``Malformed``.
Compose accepts ``${NAME:-{}`` as well; here a brace inside a word has to be closed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OPERATOR = re.compile(r":?[-+?]")
_BRACE = re.compile(r"[{}]")
_DEEPEST = 10


class Malformed(ValueError):
    """The text has a ``${`` that does not begin a variable."""


class Variable(NamedTuple):
    """A place where a value is filled in."""

    name: str
    operator: str = ""
    """One of ``:- - :+ + :? ?``, or empty."""
    word: Sequence[str | Variable] = ()
    """What follows the operator."""


Values = Callable[[str], str | None]
"""The value of a name, ``None`` if there is none. A mapping's ``get`` will do."""
Missing = Callable[[str, str | None], str]
"""Called with a name that has no value and no default, and with the word of ``?`` where a value is required. It returns
the text to use, or raises."""


def substitute(text: str, values: Values, missing: Missing) -> str:
    """The text with every variable filled in. Values are not searched for further variables."""
    return _joined(parse(text), values, missing)


def variables(text: str) -> Iterator[Variable]:
    """Every variable of the text, those inside words included."""
    yield from _within(parse(text))


def only_variable(text: str) -> Variable | None:
    """The variable if the text is one variable and nothing else."""
    parts = parse(text)
    return parts[0] if len(parts) == 1 and not isinstance(parts[0], str) else None


def escaped(text: str) -> str:
    """Text that ``substitute`` turns into the given one."""
    return text.replace("$", "$$")


def parse(text: str, depth: int = 0) -> list[str | Variable]:
    """Plain text and variables in turn. Raises ``Malformed``."""
    parts: list[str | Variable] = []
    at = 0
    while (dollar := text.find("$", at)) >= 0:
        parts.append(text[at:dollar])
        part, at = _part(text, dollar + 1, depth)
        parts.append(part)
    return [part for part in [*parts, text[at:]] if part]


def closing_brace(text: str, opening: int) -> int | None:
    """Where the brace at ``opening`` is closed. All braces in between count, also those of no variable."""
    depth = 0
    for brace in _BRACE.finditer(text, opening):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return brace.start()
    return None


def chosen(operator: str, value: str | None, word: str) -> str | None:
    """The value, the word or nothing, by the operator. ``None``: a value is required and missing."""
    given = bool(value) if operator.startswith(":") else value is not None
    if operator.endswith("+"):
        return word if given else ""
    if given:
        return value
    return word if operator.endswith("-") else None


def _part(text: str, at: int, depth: int) -> tuple[str | Variable, int]:
    """What the ``$`` in front of ``at`` begins, and where the text goes on."""
    if text.startswith("$", at):
        return "$", at + 1
    if text.startswith("{", at):
        end = closing_brace(text, at)
        if end is None:
            raise Malformed(f"{text[at - 1 : at + 40]!r} has no closing brace")
        return _braced(text[at + 1 : end], depth), end + 1
    name = _NAME.match(text, at)
    return (Variable(name[0]), name.end()) if name else ("$", at)


def _braced(inside: str, depth: int) -> Variable:
    name = _NAME.match(inside)
    operator = _OPERATOR.match(inside, name.end()) if name else None
    if name is None or "\n" in inside or (operator is None and name.end() < len(inside)):
        raise Malformed(f"{'${' + inside[:40] + '}'!r} is not a variable")
    if operator is None:
        return Variable(name[0])
    if depth >= _DEEPEST:
        raise Malformed(f"{'${' + inside[:40] + '}'!r} is nested too deeply")
    return Variable(name[0], operator[0], parse(inside[operator.end() :], depth + 1))


def _within(parts: Sequence[str | Variable]) -> Iterator[Variable]:
    for part in parts:
        if not isinstance(part, str):
            yield part
            yield from _within(part.word)


def _joined(parts: Sequence[str | Variable], values: Values, missing: Missing) -> str:
    return "".join(part if isinstance(part, str) else _filled(part, values, missing) for part in parts)


def _filled(variable: Variable, values: Values, missing: Missing) -> str:
    word = _joined(variable.word, values, missing)
    value = chosen(variable.operator, values(variable.name), word)
    return missing(variable.name, word if variable.operator else None) if value is None else value
