"""A ``task.toml``: read, brought up to date, and held against Harbor's schema, with the line of every problem.

Used by ``harbor_inspection``. Harbor's models decide what is valid. They ignore unknown fields and replace deprecated
ones with a process-wide warning; here both become warnings of the task, and nothing outside is touched.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterator, Mapping
from copy import deepcopy
from itertools import islice
from pathlib import Path
from typing import Any, get_args

from harbor.models.task.config import EnvironmentConfig, TaskConfig
from pydantic import BaseModel, ValidationError

from seatrial.adapters.positions import KeyPath, Positions, line_of, toml_positions
from seatrial.adapters.task_problems import LONGEST_SEC, Problems, encodable, read_text, report_invalid

CONFIG = "task.toml"
_WARNINGS = 50
"""Of one kind; more of them would tell nobody more."""
_DEPTH = 100
_PART = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
_LONG_KEY = re.compile(rf"(?<![\w.\"'-]){_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{{_DEPTH},}}")
_LEAST = {"timeout_sec": 0, "build_timeout_sec": 0, "cpus": 0.001, "memory_mb": 1, "storage_mb": 1, "gpus": 0}
"""Amounts, wherever they stand, and the least that each can be."""
_LEGACY = {"version", "allow_internet", "memory", "storage"}


class TaskToml:
    """The configuration file of one task."""

    def __init__(self, root: Path, problems: Problems) -> None:
        self._root = root
        self._problems = problems

    def read(self) -> TaskConfig | None:
        """The configuration, or ``None`` and at least one problem."""
        text = read_text(self._root, CONFIG, self._problems)
        if text is None:
            if not self._problems.fatal:
                self._problems.error(CONFIG, "is missing.", fix="Add a task.toml.")
            return None
        if (deep := _LONG_KEY.search(text)) is not None:  # the parser takes time by the square of a key's length
            line = text.count("\n", 0, deep.start()) + 1
            self._problems.error(CONFIG, f"has a key of more than {_DEPTH} parts.", line=line, fix="Shorten the key.")
            return None
        try:
            raw = tomllib.loads(text)
        except (ValueError, RecursionError) as bad:
            told = re.search(r"line (\d+)", str(bad))
            message = re.sub(r" \(at .*\)$", "", str(bad))
            self._problems.error(
                CONFIG,
                f"is not valid TOML: {message}.",
                line=int(told[1]) if told else len(text.splitlines()),
                fix="Correct the syntax.",
            )
            return None
        if _is_deeper(raw, _DEPTH):
            self._problems.error(CONFIG, f"is nested more than {_DEPTH} deep.", fix="Keep data out of this file.")
            return None
        if encodable(raw, CONFIG, self._problems) is None:
            return None
        positions = toml_positions(text)
        self._warn_unknown(raw, positions)
        self._check_numbers(raw, (), positions)
        try:
            found = TaskConfig.model_validate(self._modernised(raw, positions))
        except ValidationError as bad:
            report_invalid(bad, CONFIG, positions, self._problems)
            return None
        return None if self._problems.fatal else found

    def _check_numbers(self, table: Any, path: KeyPath, positions: Positions) -> None:
        """Below nothing, nan and inf would mean "without limit" further on, or offset another limit."""
        items = table.items() if isinstance(table, dict) else enumerate(table) if isinstance(table, list) else ()
        for key, value in items:
            here = (*path, key)
            if isinstance(value, dict | list):
                if here != ("metadata",):
                    self._check_numbers(value, here, positions)
                continue
            least = _LEAST.get(str(key))
            if least is None or isinstance(value, bool) or not isinstance(value, int | float):
                continue
            if not least <= value <= LONGEST_SEC:
                self._problems.error(
                    CONFIG,
                    f"{'.'.join(map(str, here))}: is not between {least:g} and {LONGEST_SEC:g}.",
                    line=line_of(positions, here),
                    fix="Give an amount that a machine has.",
                )

    def _warn_unknown(self, raw: dict[str, Any], positions: Positions) -> None:
        for path, choices in islice(_unknown_keys(raw, TaskConfig, ()), _WARNINGS):
            near = difflib.get_close_matches(str(path[-1]), choices, n=1)
            self._problems.warn(
                CONFIG,
                f"{'.'.join(map(str, path))}: unknown field, which Harbor ignores.",
                line=line_of(positions, path),
                fix=f"Did you mean {near[0]!r}?" if near else "Remove it, or move it below [metadata].",
            )

    def _modernised(self, raw: dict[str, Any], positions: Positions) -> dict[str, Any]:
        """Deprecated fields replaced as Harbor would, without the process-wide warnings it raises on the way."""
        data = deepcopy(raw)
        for path, section in _environments(data):
            if (allowed := section.pop("allow_internet", None)) is not None:
                self._deprecated((*path, "allow_internet"), "network_mode", positions)
                if "network_mode" not in section and section.get("allowed_hosts") is None:
                    section["network_mode"] = "public" if allowed else "no-network"
            for old in ("memory", "storage"):
                if old in section:
                    self._deprecated((*path, old), f"{old}_mb", positions)
                    self._resize(section, old, (*path, old), positions)
        return data

    def _resize(self, section: dict[str, Any], old: str, path: KeyPath, positions: Positions) -> None:
        value = section.pop(old)
        if not isinstance(value, str):
            return  # Harbor drops it as well
        try:
            megabytes = EnvironmentConfig._parse_size_to_mb(value)
            if not 1 <= megabytes <= LONGEST_SEC:
                raise ValueError
        except (ValueError, OverflowError):
            self._problems.error(
                CONFIG,
                f"{'.'.join(map(str, path))}: {value!r} is not a size.",
                line=line_of(positions, path),
                fix=f'Write {old}_mb = 2048, or {old} = "2G".',
            )
            return
        if section.setdefault(f"{old}_mb", megabytes) != megabytes:
            self._problems.error(
                CONFIG,
                f"{'.'.join(map(str, path))}: contradicts {old}_mb.",
                line=line_of(positions, path),
                fix=f"Keep {old}_mb only.",
            )

    def _deprecated(self, path: KeyPath, instead: str, positions: Positions) -> None:
        self._problems.warn(
            CONFIG,
            f"{'.'.join(map(str, path))}: deprecated field.",
            line=line_of(positions, path),
            fix=f"Use {instead} instead.",
        )


def _is_deeper(table: Any, depth: int) -> bool:
    """Without recursion: dotted keys nest as deep as the file is long."""
    level = [table]
    for _ in range(depth):
        parts = [list(each.values()) if isinstance(each, dict) else each for each in level]
        level = [value for values in parts for value in values if isinstance(value, dict | list)]
        if not level:
            return False
    return True


def _environments(data: dict[str, Any]) -> Iterator[tuple[KeyPath, dict[str, Any]]]:
    """Every environment table of a task.toml: the main one, the verifier's, and those of the steps' verifiers."""
    if isinstance(data.get("environment"), dict):
        yield ("environment",), data["environment"]
    steps = data.get("steps")
    holders: list[tuple[KeyPath, Any]] = [((), data)]
    if isinstance(steps, list):
        holders += [(("steps", index), step) for index, step in enumerate(steps)]
    for path, holder in holders:
        verifier = holder.get("verifier") if isinstance(holder, dict) else None
        if isinstance(verifier, dict) and isinstance(verifier.get("environment"), dict):
            yield (*path, "verifier", "environment"), verifier["environment"]


def _unknown_keys(
    data: Mapping[str, Any], model: type[BaseModel], path: KeyPath
) -> Iterator[tuple[KeyPath, list[str]]]:
    """Keys that the model has no field for, with the names it does have."""
    for key, value in data.items():
        field = model.model_fields.get(key)
        if field is None:
            if key not in _LEGACY:
                yield (*path, key), list(model.model_fields)
            continue
        nested = next(_models(field.annotation), None)
        if nested is None:
            continue
        items = enumerate(value) if isinstance(value, list) else [(None, value)]
        for index, item in items:
            if isinstance(item, dict):
                yield from _unknown_keys(item, nested, (*path, key) if index is None else (*path, key, index))


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models(argument)
