"""The tool that runs commands, of those that an agent offers its model.

Agents call it by different names, and its argument too. The name is searched among those that agents use; what the
argument looks like is read from the schema that came with the request.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

MANY_COMMANDS = "execute_commands"
"""A tool with this suffix takes a list of commands; any other takes one."""
_NAMES = ("bash", "exec_command", "shell_command", "run_shell_command", "shell", "execute_bash", "terminal")
"""In lower case, the best first."""
_ARGUMENTS = ("command", "cmd", "commands")
_ZEROS: Mapping[str, Any] = {"boolean": False, "integer": 0, "number": 0, "array": [], "object": {}}


@dataclass(frozen=True, slots=True)
class Offered:
    """A tool of a request."""

    name: str
    schema: Mapping[str, Any]
    """Of its arguments."""


@dataclass(frozen=True, slots=True)
class ShellTool:
    name: str = "bash"
    argument: str = "command"
    form: Literal["text", "commands", "words"] = "text"
    """A command as text, a list of commands, or the words of a command."""
    required: Mapping[str, Any] = field(default_factory=dict)
    """Values for what else its schema requires."""

    def arguments(self, command: str) -> dict[str, Any]:
        match self.form:
            case "text":
                value: str | list[str] = command
            case "commands":
                value = [command]
            case "words":
                value = ["bash", "-c", command]
        return {**self.required, self.argument: value}


BASH = ShellTool()


def shell_tool(offered: Sequence[Offered]) -> ShellTool:
    """A tool named ``bash`` with one argument, if none of the offered ones is known."""
    chosen = next((tool for tool in offered if tool.name.endswith(MANY_COMMANDS)), None) or _best(offered)
    if chosen is None:
        return BASH
    properties = _mapping(chosen.schema.get("properties"))
    argument = next((name for name in _ARGUMENTS if name in properties), _ARGUMENTS[0])
    if chosen.name.endswith(MANY_COMMANDS):
        return ShellTool(chosen.name, "commands", "commands")
    is_list = _kind(properties.get(argument)) == "array"
    others = [name for name in chosen.schema.get("required") or () if name != argument]
    return ShellTool(
        chosen.name,
        argument,
        "words" if is_list else "text",
        {name: least_value(properties.get(name)) for name in others},
    )


def least_value(schema: object) -> Any:
    """The least value that a schema allows, for answers that are not read."""
    wanted = _mapping(schema)
    if wanted.get("enum"):
        return wanted["enum"][0]
    kind = _kind(wanted)
    if kind == "object" or "properties" in wanted:
        properties = _mapping(wanted.get("properties"))
        return {name: least_value(properties.get(name)) for name in wanted.get("required") or ()}
    return _ZEROS.get(kind, "Run it.")


def _best(offered: Iterable[Offered]) -> Offered | None:
    by_name = {tool.name.lower(): tool for tool in reversed(list(offered))}
    return next((by_name[name] for name in _NAMES if name in by_name), None)


def _kind(schema: object) -> str:
    """Google writes types in capitals, and some schemas name several."""
    kind = _mapping(schema).get("type")
    return str(kind[0] if isinstance(kind, list) and kind else kind).lower()


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
