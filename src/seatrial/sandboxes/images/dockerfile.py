"""Splits a Dockerfile into instructions: directives, comments, continued lines, here-documents and flags.

The first of three steps: ``rewrite`` interprets each instruction and ``canonical`` writes it. The builder never sees
the author's text. The grammar is a part of BuildKit's: a spelling that builders read differently is refused, with its
line number.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from seatrial.errors import ImageFault

KEYWORDS = frozenset(
    {"ADD", "ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "EXPOSE", "FROM", "HEALTHCHECK", "LABEL", "MAINTAINER"}
    | {"ONBUILD", "RUN", "SHELL", "STOPSIGNAL", "USER", "VOLUME", "WORKDIR"}
)
_DIRECTIVE = re.compile(r"#[ \t]*([A-Za-z][A-Za-z0-9]*)[ \t]*=[ \t]*(.+?)[ \t]*$")
_KNOWN_DIRECTIVES = ("syntax", "escape", "check")
_HEREDOC_WORD = re.compile(r"\d*<<(-?)([^<]+)")
_TAKES_HEREDOCS = ("RUN", "COPY", "ADD")
_FLAG = re.compile(r"--([a-z]+(?:-[a-z]+)*)(?:=((?:\"[^\"\\`]*\"|'[^'\\`]*'|[^\s\"'\\`])*))?(?=[ \t]|$)")
_BLANKS = " \t"
_NO_TEXT = ("Cc", "Cs", "Zl", "Zp")


@dataclass(frozen=True, slots=True)
class Heredoc:
    """One here-document of an instruction."""

    name: str
    word: str
    """As written, for example ``<<-"EOF"``."""
    lines: tuple[str, ...]
    """As written, without line ends."""
    expands: bool
    strips_tabs: bool

    @property
    def content(self) -> str:
        lines = (line.lstrip("\t") for line in self.lines) if self.strips_tabs else self.lines
        return "".join(f"{line}\n" for line in lines)


@dataclass(frozen=True, slots=True)
class Flag:
    """``--name=value`` in front of an instruction's words, without quotes, variables not expanded."""

    name: str
    value: str | None


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction with its continued lines joined."""

    keyword: str
    flags: tuple[Flag, ...]
    rest: str
    line: int
    heredocs: tuple[Heredoc, ...] = ()

    def flag(self, name: str) -> str | None:
        return next((flag.value for flag in self.flags if flag.name == name), None)

    @contextmanager
    def located(self) -> Iterator[None]:
        """Adds the line number to every fault."""
        try:
            yield
        except ImageFault as fault:
            if fault.message.startswith("Line "):
                raise
            raise type(fault)(f"Line {self.line} of the Dockerfile: {fault.message}", fix=fault.fix) from fault

    def refused(self, reason: str, fix: str = "") -> ImageFault:
        return ImageFault(f"Line {self.line} of the Dockerfile: {reason}", fix=fix)


@dataclass(frozen=True, slots=True)
class Dockerfile:
    escape: str
    instructions: tuple[Instruction, ...]


def parse(text: str) -> Dockerfile:
    lines = [line.removesuffix("\r") for line in text.removeprefix("\ufeff").split("\n")]
    escape, start = _directives(lines)
    instructions = tuple(_instructions(lines, start, escape))
    first = next((item for item in instructions if item.keyword != "ARG"), None)
    if first is None or first.keyword != "FROM":
        raise ImageFault(f"The Dockerfile has no FROM before {f'line {first.line}' if first else 'the end'}.")
    return Dockerfile(escape, instructions)


def parse_trigger(trigger: Instruction, escape: str) -> Instruction:
    """The instruction of an ``ONBUILD``."""
    inner = _instruction(trigger.rest, trigger.line, escape)
    if inner.keyword in ("ONBUILD", "FROM", "MAINTAINER"):
        raise trigger.refused(f"ONBUILD takes no {inner.keyword}.")
    if inner.keyword in _TAKES_HEREDOCS and any(True for _ in _heredoc_words(inner, escape)):
        raise trigger.refused("ONBUILD takes no here-document.")
    return inner


def _directives(lines: list[str]) -> tuple[str, int]:
    """The escape character, and the index of the first line after the directives. Ignores ``syntax`` and ``check``."""
    seen: dict[str, str] = {}
    for index, line in enumerate(lines):
        match = _DIRECTIVE.match(line.lstrip(_BLANKS))
        name = match[1].lower() if match else ""
        if match is None or name not in _KNOWN_DIRECTIVES:
            return seen.get("escape", "\\"), index
        if name in seen or (name == "escape" and match[2] not in ("\\", "`")):
            raise ImageFault(f"Line {index + 1} of the Dockerfile: the directive {name} is not understood.")
        seen[name] = match[2]
    return seen.get("escape", "\\"), len(lines)


def _instructions(lines: list[str], index: int, escape: str) -> Iterator[Instruction]:
    while index < len(lines):
        if _is_skipped(lines[index]):
            index += 1
            continue
        start = index
        joined, index = _logical_line(lines, index, escape)
        found = _instruction(joined, start + 1, escape)
        heredocs: list[Heredoc] = []
        if found.keyword in _TAKES_HEREDOCS:
            for word, name, strips in _heredoc_words(found, escape):
                body, index = _body(lines, index, name, strips, start + 1)
                quoted = any(quote in word for quote in "\"'\\")
                heredocs.append(Heredoc(name, word, tuple(body), not quoted, strips))
        yield Instruction(found.keyword, found.flags, found.rest, found.line, tuple(heredocs))


def _is_skipped(line: str) -> bool:
    stripped = line.strip(_BLANKS)
    return not stripped or stripped.startswith("#")


def _logical_line(lines: list[str], index: int, escape: str) -> tuple[str, int]:
    """Joins continued lines without the comments and empty lines between them, as Docker does."""
    continued = re.compile(rf"(?:^|(?<=[^{re.escape(escape)}])){re.escape(escape)}[ \t]*$")
    joined, begun = "", False
    while index < len(lines):
        line = lines[index]
        index += 1
        if begun and _is_skipped(line):
            continue
        _check_characters(line, index)
        body = line if begun else line.lstrip(_BLANKS)
        begun = True
        match = continued.search(body)
        if match is None:
            return joined + body, index
        joined += body[: match.start()]
    return joined, index


def _check_characters(line: str, number: int) -> None:
    """Refuses line ends and blanks of Unicode around an instruction, because parsers read them differently."""
    odd = next((char for char in line if char != "\t" and unicodedata.category(char) in _NO_TEXT), None)
    if odd is None:
        bare = line.strip(_BLANKS).rstrip("\\`").rstrip(_BLANKS)
        edges = (bare[:1], bare[-1:], line[-1:])
        odd = next((char for char in edges if char and _is_odd_space(char)), None)
    if odd is not None:
        raise ImageFault(f"Line {number} of the Dockerfile has the character U+{ord(odd):04X} where it is not allowed.")


def _is_odd_space(char: str) -> bool:
    """White space or an invisible character for at least one parser."""
    return char not in _BLANKS and (char.isspace() or unicodedata.category(char) in ("Zs", "Zl", "Zp", "Cf"))


def _instruction(line: str, number: int, escape: str) -> Instruction:
    match = re.match(r"([A-Za-z]+)(?:[ \t]+|$)", line)
    keyword = match[1].upper() if match else ""
    if match is None or keyword not in KEYWORDS:
        raise ImageFault(f"Line {number} of the Dockerfile does not begin with an instruction: {line[:60]!r}.")
    rest, flags = line[match.end() :].strip(_BLANKS), []
    while found := _FLAG.match(rest):
        value = None if found[2] is None else re.sub(r"[\"']", "", found[2])
        flags.append(Flag(found[1], value))
        rest = rest[found.end() :].lstrip(_BLANKS)
    done = Instruction(keyword, tuple(flags), rest, number)
    if rest.startswith("--") or (rest and _is_odd_space(rest[0])):
        raise done.refused(f"{rest.split(maxsplit=1)[0][:40]!r} is not understood as a flag or a word.")
    if any(flag.value is not None and any(map(_is_odd_space, flag.value)) for flag in flags):
        raise done.refused("a flag has an unusual blank in it.")
    return done


def _heredoc_words(instruction: Instruction, escape: str) -> Iterator[tuple[str, str, bool]]:
    if "<<" not in instruction.rest or instruction.rest.startswith("["):
        return
    for word in shell_words(instruction.rest, escape):
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
        if "\0" in line:
            raise ImageFault(f"Line {index} of the Dockerfile has the character U+0000 where it is not allowed.")
        body.append(line)
    raise ImageFault(f"The here-document {name} of line {number} of the Dockerfile never ends.")


def shell_words(text: str, escape: str = "\\") -> list[str]:
    """Splits at blanks outside of quotes. Words keep their quotes and escapes."""
    words, word, quote, index = [], "", "", 0
    while index < len(text):
        char = text[index]
        if char == escape and quote != "'" and index + 1 < len(text):
            word += text[index : index + 2]
            index += 2
            continue
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        if char in _BLANKS and not quote:
            if word:
                words.append(word)
            word = ""
        else:
            word += char
        index += 1
    return [*words, word] if word else words


def has_odd_space(text: str) -> bool:
    return any(map(_is_odd_space, text))
