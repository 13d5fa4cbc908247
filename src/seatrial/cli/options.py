"""Options that several commands share, and groups of options.

A group is a frozen dataclass whose fields are Typer options. Its ``TITLE`` heads them in the help. ``with_groups``
shows the fields to Typer as parameters of the command, and calls the command with the groups.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import fields, is_dataclass
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]
JobId = Annotated[int, typer.Argument(metavar="JOB", help="Number of the job.")]
TrialId = Annotated[int, typer.Argument(metavar="TRIAL", help="Number of the trial.")]
QueueOnly = Annotated[
    bool, typer.Option("--queue-only", help="Queue the trials for `seatrial worker` and return at once.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be done; change nothing.")]


def _at_once(text: str) -> int:
    """0 for ``auto``."""
    if text.lower() == "auto":
        return 0
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise typer.BadParameter(f"{text!r} is neither a number from 1 on nor auto.")
    return int(text)


Concurrency = Annotated[
    int | None,
    typer.Option(
        "-n",
        "--concurrency",
        "--n-concurrent",
        parser=_at_once,
        metavar="N",
        help="Trials to run at the same time, or auto: as many as fit into memory and processors [auto].",
    ),
]
DatasetName = Annotated[
    str | None, typer.Option("-d", "--dataset", metavar="DATASET", help="Dataset, as NAME or NAME@VERSION.")
]
TaskPaths = Annotated[
    list[Path] | None, typer.Argument(metavar="PATH", help="A task, a folder of tasks, or an archive of either.")
]

SomePaths = Annotated[
    list[Path], typer.Argument(metavar="PATH", help="A task, a folder of tasks, or an archive of either.")
]
Dataset = Annotated[str, typer.Argument(metavar="DATASET", help="NAME or NAME@VERSION.")]


def split_name(name: str) -> tuple[str, str | None]:
    """``NAME`` or ``NAME@VERSION``."""
    head, _, version = name.partition("@")
    return head, version or None


def with_groups(command: Callable[..., None]) -> Callable[..., None]:
    hints = get_type_hints(command, include_extras=True)
    groups = {name: kind for name, kind in hints.items() if isinstance(kind, type) and is_dataclass(kind)}
    shown: list[Parameter] = []
    for parameter in signature(command).parameters.values():
        group = groups.get(parameter.name)
        own = parameter.replace(annotation=hints[parameter.name], kind=Parameter.KEYWORD_ONLY)
        shown += [own] if group is None else _parameters(group)

    def call(**given: Any) -> None:
        made = {
            name: group(**{field.name: given.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        command(**made, **given)

    return shown_as(call, command, shown)


def shown_as(
    call: Callable[..., None], command: Callable[..., Any], parameters: list[Parameter]
) -> Callable[..., None]:
    """Makes Typer see ``call`` as the command, with these parameters."""
    call.__name__, call.__doc__ = command.__name__, command.__doc__
    call.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return call


def _parameters(group: type) -> list[Parameter]:
    hints = get_type_hints(group, include_extras=True)
    title = getattr(group, "TITLE", None)
    return [
        Parameter(
            field.name, Parameter.KEYWORD_ONLY, default=field.default, annotation=_titled(hints[field.name], title)
        )
        for field in fields(group)
    ]


def _titled(hint: Any, title: str | None) -> Any:
    """The option in the help's section ``title``. Several groups share options, so it is a copy."""
    kind, *known = get_args(hint)
    shown = [copy(each) for each in known]
    for each in shown:
        each.rich_help_panel = title
    return Annotated[kind, *shown]
