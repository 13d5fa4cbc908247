"""What a trial needs of the worker that runs it, and what a worker has.

Known when a job is submitted. The store keeps needs as a short text with each trial; there are few different ones, so
that a claim can decide about each of them in memory. Numbers are rounded up to keep them few.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import Any
from urllib.parse import quote, unquote

from seatrial.domain.frozen import Frozen
from seatrial.domain.sandbox_choice import AUTOMATIC, SEVERAL_CONTAINERS, needs_several_containers
from seatrial.domain.task import Task

_ENGINE_ENVIRONMENTS = (SEVERAL_CONTAINERS,)
"""Environments of Harbor that use this machine's container engine."""
_LOCAL_ENVIRONMENTS = (SEVERAL_CONTAINERS, "harbor:podman", "harbor:apple-container", "harbor:singularity")
"""Environments of Harbor whose sandboxes take this machine's memory and processors. The others are elsewhere."""
_PLAIN = ":./@+"
_STEPS = 8
"""Rounded numbers between two powers of two."""
LEAST_CPUS = 0.25
_MOST_GPUS = 1024
_ELSEWHERE_MB = 64
"""What a trial takes on the worker's machine while its sandbox is at a provider."""


class Needs(Frozen):
    """The needs of one trial. The default needs nothing special."""

    memory_mb: int | None = None
    """``None``: the task does not say, and the sandbox's default applies."""
    cpus: float | None = None
    sandbox: str = AUTOMATIC
    gpus: int = 0
    elevated: bool = False
    """Elevated privileges, which an operator allows per machine."""
    architecture: str = ""
    """Such as ``amd64``; empty for any."""
    agent: str = ""
    """The import path of an agent that is not one of ours."""

    @cached_property
    def text(self) -> str:
        """The stored form; empty for the default."""
        words = []
        for name, value in self:
            if value != _DEFAULTS[name]:
                words.append(name if value is True else f"{name}={quote(f'{value}', safe=_PLAIN)}")
        return " ".join(words)

    @staticmethod
    def parse(text: str) -> Needs:
        """Ignores what a newer version wrote and this one does not know."""
        return _parsed(text)


_DEFAULTS: dict[str, Any] = {name: field.default for name, field in Needs.model_fields.items()}
_READERS: dict[str, Callable[[str], Any]] = {"memory_mb": int, "cpus": float, "gpus": int}


@lru_cache(maxsize=4096)
def _parsed(text: str) -> Needs:
    values: dict[str, Any] = {}
    for word in text.split():
        name, equals, value = word.partition("=")
        if name in _DEFAULTS:
            values[name] = _READERS.get(name, unquote)(value) if equals else True
    return Needs(**values)


def needs_of(task: Task, sandbox: str, agent: str) -> Needs:
    """What attempts at a task with this agent need."""
    if needs_several_containers(sandbox, task):
        sandbox = SEVERAL_CONTAINERS
    elsewhere = sandbox.startswith("harbor:") and sandbox not in _LOCAL_ENVIRONMENTS
    wants = task.resources
    memory, cpus = (_ELSEWHERE_MB, LEAST_CPUS) if elsewhere else (wants.memory_mb, wants.cpus)
    return Needs(
        memory_mb=None if memory is None else int(_rounded_up(max(memory, 1))),
        cpus=None if cpus is None else max(_rounded_up(cpus), LEAST_CPUS),
        sandbox=sandbox,
        gpus=0 if elsewhere else min(wants.gpus, _MOST_GPUS),
        elevated=task.elevated,
        architecture="" if elsewhere else task.architecture,
        agent=agent if ":" in agent else "",
    )


def _rounded_up(value: float) -> float:
    """To three binary digits, so that 2048, 3072 and 4096 stay as they are and 3000 becomes 3072."""
    if not math.isfinite(value) or value <= 0:
        return LEAST_CPUS
    step = 2.0 ** math.floor(math.log2(value)) / _STEPS
    return math.ceil(value / step) * step


class Abilities(Frozen):
    """What a worker can run. ``None`` or empty: not known, so nothing is ruled out."""

    sandboxes: tuple[str, ...] | None = None
    """Our sandboxes that work on its machine. An empty list is known: none works, or none was tried yet."""
    architecture: str = ""
    gpus: int | None = None
    elevated: bool | None = None
    lacks: tuple[str, ...] = ()
    """Import paths that its trials asked for and that are not installed."""

    def missing(self, needs: Needs) -> str:
        """What it lacks for a trial, as the object of a sentence; empty if it has everything."""
        if self.sandboxes is not None and (kind := _missing_sandbox(needs.sandbox, self.sandboxes)):
            return kind
        if needs.architecture and self.architecture and needs.architecture != self.architecture:
            return f"a machine of the architecture {needs.architecture}"
        if self.gpus is not None and needs.gpus > self.gpus:
            return f"{needs.gpus} GPUs"
        if needs.elevated and self.elevated is False:
            return "elevated privileges (SEATRIAL_ALLOW_PRIVILEGED)"
        return f"the agent {needs.agent}" if needs.agent in self.lacks else ""


def _missing_sandbox(wanted: str, working: tuple[str, ...]) -> str:
    if wanted == AUTOMATIC:
        return "" if working else "a sandbox that works"
    if wanted in _ENGINE_ENVIRONMENTS:
        return "" if "docker" in working else "a container engine"
    return f"the sandbox {wanted}" if wanted in ("oci", "docker") and wanted not in working else ""
