"""Reads a Dockerfile into instructions, here-documents included. Changes nothing and runs nothing.

Read by ``rewrite`` (which makes it digestible for every builder) and by ``bases``. The grammar is BuildKit's: the
builders we have know less, which is why the reading happens here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from seatrial.errors import ImageFault

_DIRECTIVE = re.compile(r"#\s*([A-Za-z]+)\s*=\s*(.+?)\s*$")
_HEREDOC_WORD = re.compile(r"\d*<<(-?)([^<]+)")
_TAKES_HEREDOCS = ("RUN", "COPY", "ADD")


@dataclass(frozen=True, slots=True)
class Heredoc:
    """One here-document of an instruction."""

    name: str
    word: str
    """As it stands in the line, e.g. ``<<-"EOF"``."""
    lines: tuple[str, ...]
    """Without line ends, as they were written."""
    expands: bool
    strips_tabs: bool

    @property
    def content(self) -> str:
        lines = (line.lstrip("\t") for line in self.lines) if self.strips_tabs else self.lines
        return "".join(f"{line}\n" for line in lines)


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction with its continuation lines joined."""

    keyword: str
    flags: tuple[str, ...]
    """``--name=value`` words in front, as written."""
    rest: str
    line: int
    text: str
    """What stands in the file, for instructions that are passed on unchanged."""
    heredocs: tuple[Heredoc, ...] = ()

    def flag(self, name: str) -> str | None:
        prefix = f"--{name}"
        for flag in self.flags:
            key, _, value = flag.partition("=")
            if key == prefix:
                return value.strip("\"'")
        return None


@dataclass(frozen=True, slots=True)
class Dockerfile:
    escape: str
    instructions: tuple[Instruction, ...]


def parse(text: str) -> Dockerfile:
    lines = text.removeprefix("\ufeff").splitlines()
    escape = _escape(lines)
    instructions = tuple(_instructions(lines, escape))
    first = next((item for item in instructions if item.keyword != "ARG"), None)
    if first is None or first.keyword != "FROM":
        where = f"line {first.line}" if first else "the end"
        raise ImageFault(f"The Dockerfile has no FROM before {where}.")
    return Dockerfile(escape, instructions)


def _escape(lines: list[str]) -> str:
    """Parser directives are comments at the very top; ``syntax`` is tolerated and means nothing to us."""
    for line in lines:
        match = _DIRECTIVE.match(line.strip())
        if match is None:
            return "\\"
        if match[1].lower() == "escape" and match[2] in ("\\", "`"):
            return match[2]
    return "\\"


def _instructions(lines: list[str], escape: str) -> Iterator[Instruction]:
    index = 0
    while index < len(lines):
        if _is_skipped(lines[index]):
            index += 1
            continue
        start = index
        joined, index = _logical_line(lines, index, escape)
        keyword, flags, rest = _split(joined, start + 1)
        heredocs: list[Heredoc] = []
        if keyword in _TAKES_HEREDOCS and "<<" in rest:
            for word, name, strips in _heredoc_words(rest):
                body, index = _body(lines, index, name, strips, start + 1)
                quoted = any(quote in word for quote in "\"'\\")
                heredocs.append(Heredoc(name, word, tuple(body), not quoted, strips))
        raw = "\n".join(lines[start:index])
        yield Instruction(keyword, flags, rest, start + 1, raw, tuple(heredocs))


def _is_skipped(line: str) -> bool:
    stripped = line.strip()
    return not stripped or stripped.startswith("#")


def _logical_line(lines: list[str], index: int, escape: str) -> tuple[str, int]:
    """Joins continued lines; comments and empty lines between them vanish, as in Docker."""
    joined = ""
    while index < len(lines):
        line = lines[index]
        index += 1
        if joined and _is_skipped(line):
            continue
        body = line.rstrip()
        if not joined:
            body = body.lstrip()
        if body.endswith(escape):
            joined += body[: -len(escape)]
            continue
        return joined + body, index
    return joined, index


def _split(line: str, number: int) -> tuple[str, tuple[str, ...], str]:
    keyword, _, rest = line.partition(" ") if " " in line else line.partition("\t")
    if "\t" in keyword:
        keyword, _, tail = keyword.partition("\t")
        rest = f"{tail} {rest}"
    if not re.fullmatch(r"[A-Za-z]+", keyword):
        raise ImageFault(f"Line {number} of the Dockerfile does not begin with an instruction: {line[:60]!r}.")
    rest, flags = rest.strip(), []
    while match := re.match(r"--[a-z][a-z-]*(?:=(?:\"[^\"]*\"|'[^']*'|\S)*)?(?=\s|$)", rest):
        flags.append(match[0])
        rest = rest[match.end() :].lstrip()
    return keyword.upper(), tuple(flags), rest


def _heredoc_words(rest: str) -> Iterator[tuple[str, str, bool]]:
    for word in shell_words(rest):
        match = _HEREDOC_WORD.fullmatch(word)
        if match and (name := re.sub(r"[\"'\\]", "", match[2])):
            yield word, name, bool(match[1])


def _body(lines: list[str], index: int, name: str, strips: bool, number: int) -> tuple[list[str], int]:
    body: list[str] = []
    while index < len(lines):
        line = lines[index]
        index += 1
        if (line.lstrip("\t") if strips else line) == name:
            return body, index
        body.append(line)
    raise ImageFault(f"The here-document {name} of line {number} of the Dockerfile never ends.")


def shell_words(text: str) -> list[str]:
    """Splits at blanks outside of quotes; quotes and escapes stay in the words."""
    words, word, quote, index = [], "", "", 0
    while index < len(text):
        char = text[index]
        if char == "\\" and quote != "'" and index + 1 < len(text):
            word += text[index : index + 2]
            index += 2
            continue
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        if char.isspace() and not quote:
            if word:
                words.append(word)
            word = ""
        else:
            word += char
        index += 1
    return [*words, word] if word else words
