"""Converts a Terminal-Bench 1 ``solution.yaml``, keystrokes for a terminal, into a script that types them."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from seatrial.adapters.positions import yaml_positions
from seatrial.adapters.task_problems import FileProblems, Problems, read_text, read_yaml

SOLUTION_YAML = "solution.yaml"
_KEY = re.compile(
    r"^(([CMS]-|\^).+|Enter|KPEnter|Escape|Tab|BTab|Space|BSpace|Up|Down|Left|Right|Home|End|PageUp|PgUp|PPage"
    r"|PageDown|PgDn|NPage|DC|Delete|IC|Insert|F[0-9]+)$"
)


class Keystrokes(BaseModel):
    """One entry, with Terminal-Bench's defaults."""

    model_config = ConfigDict(frozen=True, coerce_numbers_to_str=True)

    command: str
    min_timeout_sec: float = Field(default=0.0, ge=0)
    max_timeout_sec: float = Field(default=180.0, ge=0)
    block: bool = False
    append_enter: bool = True

    @property
    def is_line(self) -> bool:
        """Whether it is a line of text, which also works in a shell without a terminal."""
        return self.append_enter and not _KEY.match(self.command)


_ENTRIES = TypeAdapter(tuple[Keystrokes, ...])


def read_solution(root: Path, problems: Problems) -> tuple[Keystrokes, ...]:
    """The entries; none if there are problems."""
    text = read_text(root, SOLUTION_YAML, problems)
    raw = read_yaml(text, SOLUTION_YAML, problems) if text is not None else None
    if text is None or raw is None:
        return ()
    try:
        return _ENTRIES.validate_python(raw)
    except ValidationError as bad:
        FileProblems(problems, SOLUTION_YAML, yaml_positions(text)).report_invalid(bad)
        return ()


def replay_script(entries: tuple[Keystrokes, ...]) -> str:
    """A bash script that types the entries; ``replay.sh`` says how."""
    needs_terminal = not all(entry.is_line for entry in entries)
    calls = "".join(
        f"entry {_yes(entry.block)} {_yes(entry.append_enter)} {entry.min_timeout_sec:g} {entry.max_timeout_sec:g}"
        f" {shlex.quote(entry.command)}\n"
        for entry in entries
    )
    body = (Path(__file__).parent / "replay.sh").read_text()
    return f"#!/bin/bash\nneeds_terminal={_yes(needs_terminal)}\n{body}\n{calls}finish\n"


def _yes(value: bool) -> str:
    return "yes" if value else "no"
