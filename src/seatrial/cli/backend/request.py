"""The request of ``seatrial run``, merged from flags and a job file. Flags win.

The file is YAML. Harbor's field names (``n_attempts``, ``n_concurrent_trials``, ``model_name``, ``kwargs``,
``datasets``) are accepted too, so that Harbor job files work unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import AliasChoices, Field, ValidationError, field_validator

from seatrial.domain.likeness import did_you_mean
from seatrial.engine.jobs.request import AgentParameters, JobParameters
from seatrial.errors import InvalidInput


class AgentEntry(AgentParameters):
    """One agent of a job file: a name, or a mapping with its model, options and environment."""

    name: str = Field(validation_alias=AliasChoices("name", "import_path"))
    model: str | None = Field(default=None, validation_alias=AliasChoices("model", "model_name"))
    options: dict[str, Any] = Field(default={}, validation_alias=AliasChoices("options", "kwargs"))


class RunRequest(JobParameters):
    """One run, before its tasks are looked up."""

    name: str = Field(default="", validation_alias=AliasChoices("name", "job_name"))
    paths: tuple[Path, ...] = Field(default=(), validation_alias=AliasChoices("paths", "tasks"))
    library: tuple[str, ...] = ()
    """Tasks of the library, by name or digest."""
    agents: tuple[AgentEntry, ...] = ()
    attempts: int = Field(default=1, ge=1, le=1000, validation_alias=AliasChoices("attempts", "n_attempts"))
    concurrency: int | None = Field(
        default=None, ge=1, validation_alias=AliasChoices("concurrency", "n_concurrent_trials", "n_concurrent")
    )
    sandbox: str = Field(default="auto", validation_alias=AliasChoices("sandbox", "environment"))

    @field_validator("agents", mode="before")
    @classmethod
    def _names_are_agents(cls, value: Any) -> Any:
        if isinstance(value, str | dict):
            value = [value]
        if isinstance(value, (list, tuple)):
            return [{"name": entry} if isinstance(entry, str) else entry for entry in value]
        return value

    @field_validator("sandbox", mode="before")
    @classmethod
    def _harbor_environment(cls, value: Any) -> Any:
        """Harbor's job files write ``environment: {type: docker}``."""
        if isinstance(value, dict):
            kind = value.get("import_path") or value.get("type")
            return kind if kind is None or ":" in kind else f"harbor:{kind}"
        return value


def read_request(flags: dict[str, Any], file: Path | None) -> RunRequest:
    """Merges the given flags (not ``None``, not empty) over the file's content, and validates the result."""
    content = _read_file(file) if file is not None else {}
    given = {name: value for name, value in flags.items() if value is not False and value not in (None, (), {})}
    names = _names()
    ours = {names.get(name, name): value for name, value in content.items()}
    if "budget" in given:
        given["budget"] = _merged_caps(ours.get("budget"), given["budget"])
    try:
        return RunRequest.model_validate({**ours, **given})
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        where = f" in {file}" if file is not None else ""
        unknown = first["type"] == "extra_forbidden"
        near = did_you_mean(str(first["loc"][-1]), [*RunRequest.model_fields, *_names()]) if unknown else ""
        problem = "Unknown field" if unknown else first["msg"]
        raise InvalidInput(f"{place}{where}: {problem}.", field=place, fix=near) from error


def _merged_caps(of_file: Any, of_flags: dict[str, dict[str, Any]]) -> Any:
    """Each cap of a flag replaces that of the file, and leaves the others as they are."""
    if not isinstance(of_file, dict) or any(not isinstance(cap, dict) for cap in of_file.values()):
        return of_flags if of_file is None else of_file  # the validation says what is wrong with the file
    return {name: {**of_file.get(name, {}), **of_flags.get(name, {})} for name in {**of_file, **of_flags}}


def _names() -> dict[str, str]:
    """Every name of a field in a file, including its own."""
    aliases = {name: field.validation_alias for name, field in RunRequest.model_fields.items()}
    return {
        str(choice): name
        for name, alias in aliases.items()
        if isinstance(alias, AliasChoices)
        for choice in alias.choices
    }


def _read_file(file: Path) -> dict[str, Any]:
    import yaml

    try:
        content = yaml.safe_load(file.read_bytes())
    except OSError as error:
        raise InvalidInput(f"The job file {file} cannot be read: {error.strerror}.", field="config") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InvalidInput(f"The job file {file} is not valid YAML: {error}", field="config") from error
    if not isinstance(content, dict):
        raise InvalidInput(f"The job file {file} must hold a mapping.", field="config")
    for harbor_only in ("jobs_dir", "orchestrator", "metrics", "quiet", "debug"):
        content.pop(harbor_only, None)
    named = {str(name): value for name, value in content.items()}
    datasets = [_dataset(entry) for entry in _entries(named, "datasets", file)]
    names = [*_entries(named, "dataset", file), *(found for found in datasets if isinstance(found, str))]
    if len(names) > 1:
        problem = f"The job file {file} names several datasets."
        raise InvalidInput(problem, field="datasets", fix="Run one job per dataset.")
    tasks = [_path(entry) for entry in (*_entries(named, "paths", file), *_entries(named, "tasks", file))]
    named["paths"] = [*tasks, *(found for found in datasets if isinstance(found, Path))]
    return {**named, "dataset": names[0]} if names else named


def _entries(content: dict[str, Any], name: str, file: Path) -> list[Any]:
    """Removes a list from the file's content. A single entry may stand without a list."""
    value = content.pop(name, None) or []
    if isinstance(value, str | dict):
        return [value]
    if not isinstance(value, list) or not all(isinstance(entry, str | dict) for entry in value):
        raise InvalidInput(f"{name} in {file}: must be a list of paths or names.", field=name)
    return value


def _path(entry: str | dict[str, Any]) -> Any:
    """Harbor writes ``{path: …}``. Anything else is left to the validation of the request."""
    return entry.get("path", entry) if isinstance(entry, dict) else entry


def _dataset(entry: str | dict[str, Any]) -> Path | str:
    """A folder of tasks, or ``NAME@VERSION``."""
    if isinstance(entry, str):
        return entry
    if "path" in entry:
        return Path(str(entry["path"]))
    return str(entry.get("name", "")) + (f"@{entry['version']}" if entry.get("version") else "")


def refuse_nothing(request: RunRequest) -> None:
    if not request.paths and not request.library and request.dataset is None:
        raise InvalidInput(
            "Nothing to run.", field="paths", fix="Give a task, a folder of tasks, an archive, or a dataset with -d."
        )


def parse_pairs(pairs: Sequence[str], flag: str) -> dict[str, str]:
    """``KEY=VALUE`` flags."""
    found = {}
    for pair in pairs:
        key, sign, value = pair.partition("=")
        if not sign or not key:
            raise InvalidInput(f"{flag} {pair!r} is not KEY=VALUE.", field=flag)
        found[key.strip()] = value
    return found


def parse_options(pairs: Sequence[str], flag: str) -> dict[str, Any]:
    """``KEY=VALUE`` flags. Values are parsed as JSON if possible: ``temperature=0.2`` is a number."""
    import json

    options: dict[str, Any] = {}
    for key, value in parse_pairs(pairs, flag).items():
        try:
            options[key] = json.loads(value)
        except ValueError:
            options[key] = value
    return options
