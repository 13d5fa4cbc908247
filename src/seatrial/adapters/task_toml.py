"""Reads a ``task.toml``, replaces deprecated fields and checks it with Harbor's schema. Every problem has its line.

Used by ``harbor_inspection``. Harbor's models decide what is valid. They ignore unknown fields, and replace deprecated
ones with a process-wide warning. Here both become warnings of the task.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from copy import deepcopy
from itertools import islice
from pathlib import Path
from typing import Any, get_args

from harbor.models.task.config import EnvironmentConfig, TaskConfig
from pydantic import BaseModel, ValidationError

from seatrial.adapters.positions import KeyPath, toml_positions
from seatrial.adapters.task_problems import LONGEST_SEC, FileProblems, Problems, encodable, read_text

CONFIG = "task.toml"
_WARNINGS = 50
"""Maximum warnings about unknown fields."""
_DEPTH = 100
_PART = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
_LONG_KEY = re.compile(rf"(?<![\w.\"'-]){_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{{_DEPTH},}}")
_LEAST = {"timeout_sec": 0, "build_timeout_sec": 0, "cpus": 0.001, "memory_mb": 1, "storage_mb": 1, "gpus": 0}
"""Amounts in any table, and the smallest valid value of each."""
_LEGACY = {"version", "allow_internet", "memory", "storage"}


def read_task_toml(root: Path, problems: Problems) -> TaskConfig | None:
    """The configuration, or ``None`` and at least one problem."""
    text = read_text(root, CONFIG, problems)
    if text is None:
        if not problems.fatal:
            problems.error(CONFIG, "is missing.", fix="Add a task.toml.")
        return None
    raw = _parsed(text, problems)
    if raw is None:
        return None
    found = FileProblems(problems, CONFIG, toml_positions(text))
    for path, known in islice(_unknown_keys(raw, TaskConfig, ()), _WARNINGS):
        found.warn_unknown(path, known, "Harbor ignores", fix="Remove it, or move it below [metadata].")
    _check_numbers(raw, (), found)
    try:
        config = TaskConfig.model_validate(_modernised(raw, found))
    except ValidationError as bad:
        found.report_invalid(bad)
        return None
    return None if problems.fatal else config


def _parsed(text: str, problems: Problems) -> dict[str, Any] | None:
    if (deep := _LONG_KEY.search(text)) is not None:  # the parser takes time by the square of a key's length
        line = text.count("\n", 0, deep.start()) + 1
        problems.error(CONFIG, f"has a key of more than {_DEPTH} parts.", line=line, fix="Shorten the key.")
        return None
    try:
        raw = tomllib.loads(text)
    except (ValueError, RecursionError) as bad:
        place = re.search(r"line (\d+)", str(bad))
        line = int(place[1]) if place else len(text.splitlines())
        message = re.sub(r" \(at .*\)$", "", str(bad))
        problems.error(CONFIG, f"is not valid TOML: {message}.", line=line, fix="Correct the syntax.")
        return None
    if _is_deeper(raw, _DEPTH):
        problems.error(CONFIG, f"is nested more than {_DEPTH} deep.", fix="Keep data out of this file.")
        return None
    return raw if encodable(raw, CONFIG, problems) is not None else None


def _check_numbers(table: Any, path: KeyPath, found: FileProblems) -> None:
    """Harbor would take negative numbers, nan and inf for "no limit", or add them to another limit."""
    items = table.items() if isinstance(table, dict) else enumerate(table) if isinstance(table, list) else ()
    for key, value in items:
        here = (*path, key)
        if isinstance(value, dict | list):
            if here != ("metadata",):
                _check_numbers(value, here, found)
            continue
        least = _LEAST.get(str(key))
        if least is None or isinstance(value, bool) or not isinstance(value, int | float):
            continue
        if not least <= value <= LONGEST_SEC:
            message = f"is not between {least:g} and {LONGEST_SEC:g}."
            found.error(here, message, fix="Give an amount that a machine has.")


def _modernised(raw: dict[str, Any], found: FileProblems) -> dict[str, Any]:
    """Replaces deprecated fields as Harbor does, without its process-wide warnings."""
    data = deepcopy(raw)
    for path, section in _environments(data):
        if (allowed := section.pop("allow_internet", None)) is not None:
            found.warn((*path, "allow_internet"), "deprecated field.", fix="Use network_mode instead.")
            if "network_mode" not in section and section.get("allowed_hosts") is None:
                section["network_mode"] = "public" if allowed else "no-network"
        for old in ("memory", "storage"):
            if old in section:
                found.warn((*path, old), "deprecated field.", fix=f"Use {old}_mb instead.")
                _resize(section, old, (*path, old), found)
    return data


def _resize(section: dict[str, Any], old: str, path: KeyPath, found: FileProblems) -> None:
    value = section.pop(old)
    if not isinstance(value, str):
        return  # Harbor drops it as well
    try:
        megabytes = EnvironmentConfig._parse_size_to_mb(value)
        if not 1 <= megabytes <= LONGEST_SEC:
            raise ValueError
    except (ValueError, OverflowError):
        found.error(path, f"{value!r} is not a size.", fix=f'Write {old}_mb = 2048, or {old} = "2G".')
        return
    if section.setdefault(f"{old}_mb", megabytes) != megabytes:
        found.error(path, f"contradicts {old}_mb.", fix=f"Keep {old}_mb only.")


def _is_deeper(table: Any, depth: int) -> bool:
    """Not recursive: dotted keys can nest as deep as the file is long."""
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
