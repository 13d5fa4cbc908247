"""Plain help texts: ``JOB`` and ``PATH…`` instead of Python types, options by subject, whole sentences for commands.

``Commands`` is a Typer whose commands have this help. Every module of ``commands`` with several commands makes one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

_KINDS = {"int": "N", "float": "NUMBER", "Path": "PATH", "str": "TEXT"}
_REST = "Options"


class PlainCommand(TyperCommand):
    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return ["[OPTIONS]", *(_in_usage(each) for each in _shown(self, ctx, "argument"))]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        _write_parameters(self, ctx, formatter)


class PlainGroup(TyperGroup):
    sections: Sequence[tuple[str, Sequence[str]]] = ()
    """The commands by subject. Commands that no section names come last."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return ["[OPTIONS]", "COMMAND"]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """The commands come first, because the options of a group are few and rare."""
        named = {name for _, names in self.sections for name in names}
        others = [name for name in self.list_commands(ctx) if name not in named]
        for title, names in (*self.sections, ("More" if named else "Commands", others)):
            rows = [(name, self._sentence(ctx, name)) for name in names if name in self.commands]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)
        _write_parameters(self, ctx, formatter)

    def _sentence(self, ctx: Any, name: str) -> str:
        """The first sentence of the command's help, in full."""
        command = self.get_command(ctx, name)
        first = ((command.help if command else None) or "").strip().partition("\n\n")[0]
        return " ".join(first.split()).partition(". ")[0].rstrip(".")


class Commands(typer.Typer):
    """A group of commands with plain help."""

    def __init__(self, *, help: str, cls: type[PlainGroup] = PlainGroup, **more: Any) -> None:
        shows_help = not more.get("invoke_without_command")
        super().__init__(help=help, cls=cls, no_args_is_help=shows_help, rich_markup_mode=None, **more)

    def command[Run: Callable[..., Any]](self, name: str | None = None, **more: Any) -> Callable[[Run], Run]:
        return super().command(name, **{"cls": PlainCommand, **more})


def _write_parameters(command: Any, ctx: Any, formatter: Any) -> None:
    arguments = [(_name(each), each.help or "") for each in _shown(command, ctx, "argument")]
    if arguments:
        with formatter.section("Arguments"):
            formatter.write_dl(arguments)
    by_title: dict[str, list[tuple[str, str]]] = {}
    for each in _shown(command, ctx, "option"):
        title = getattr(each, "rich_help_panel", None) or _REST
        by_title.setdefault(title, []).append((_flags(each), _meaning(each)))
    for title in sorted(by_title, key=lambda title: title == _REST):
        with formatter.section(title):
            formatter.write_dl(by_title[title])


def _shown(command: Any, ctx: Any, kind: str) -> Iterable[Any]:
    return [each for each in command.get_params(ctx) if each.param_type_name == kind and not each.hidden]


def _name(parameter: Any) -> str:
    """``JOB`` or ``PATH…``, as the argument says it."""
    metavar = (parameter.metavar or str(parameter.name).upper()).removesuffix("…")
    return f"{metavar}…" if parameter.nargs != 1 else metavar


def _in_usage(argument: Any) -> str:
    name = _name(argument)
    return name if argument.required else f"[{name}]"


def _flags(option: Any) -> str:
    """``-k, --attempts N``. Options without a short form are indented, so that the long ones line up."""
    short = [name for name in option.opts if not name.startswith("--")]
    long = [name for name in option.opts if name.startswith("--")]
    words = ", ".join([*(short or ["   "]), *long[:1]]) if long else short[0]
    shown = words.replace("   , ", "    ")
    return shown if option.is_flag or option.count else f"{shown} {_value(option)}"


def _value(option: Any) -> str:
    if option.metavar:
        return str(option.metavar)
    kind = str(option.bare_type()).removeprefix("list[").removesuffix("]")
    return _KINDS.get(kind, "VALUE")


def _meaning(option: Any) -> str:
    """The help text with the default and the other names of the option."""
    long = [name for name in option.opts if name.startswith("--")]
    notes = [f"also {', '.join(long[1:])}"] if len(long) > 1 else []
    if not option.is_flag and option.default not in (None, "", (), []) and not callable(option.default):
        notes.insert(0, f"default: {getattr(option.default, 'value', option.default)}")
    return f"{option.help or ''} [{'; '.join(notes)}]" if notes else option.help or ""
