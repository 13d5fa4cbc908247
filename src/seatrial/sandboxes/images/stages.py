"""Follows a Dockerfile from stage to stage: what each is built on and which variables are known there. Pure."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from seatrial.errors import ImageFault, Unsupported
from seatrial.sandboxes.images import references
from seatrial.sandboxes.images.dockerfile import Dockerfile, Instruction, parse
from seatrial.sandboxes.images.image import ImageConfig
from seatrial.sandboxes.images.variables import Scope, assignments, expand

DEFAULT_SHELL = ("/bin/sh", "-c")
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def native_architecture() -> str:
    machine = platform.machine()
    return _ARCHITECTURES.get(machine, machine)


@dataclass(frozen=True, slots=True)
class Recipe:
    """A Dockerfile with what was asked of it."""

    dockerfile: Dockerfile
    build_args: Mapping[str, str] = field(default_factory=dict)
    architecture: str = field(default_factory=native_architecture)

    @classmethod
    def read(cls, text: str, build_args: Mapping[str, str] | None = None, target: str = "") -> Recipe:
        dockerfile = parse(text)
        return cls(_up_to(dockerfile, target) if target else dockerfile, dict(build_args or {}))

    def bases(self) -> tuple[str, ...]:
        """Every image that has to be here before the build, in full, each once and in order of use."""
        walk = Walk(self)
        found: dict[str, None] = {}
        for instruction in self.dockerfile.instructions:
            stage = walk.step(instruction)
            named = [stage.base] if stage and stage.base and instruction.keyword == "FROM" else []
            found.update(dict.fromkeys([*named, *walk.copied_from(instruction)]))
        return tuple(found)


@dataclass(slots=True)
class Stage:
    name: str
    base: str | None
    """Full reference of an image; ``None`` for ``scratch`` and for earlier stages."""
    parent: str
    """What ``FROM`` says once it is resolved."""
    scope: Scope = field(default_factory=Scope)
    shell: tuple[str, ...] = DEFAULT_SHELL
    user: str = ""
    workdir: str = "/"


class Walk:
    """The state while instructions are taken one after the other."""

    def __init__(self, recipe: Recipe, bases: Mapping[str, ImageConfig] | None = None) -> None:
        self.recipe = recipe
        self.stages: list[Stage] = []
        self.globals: dict[str, str] = {}
        self._bases = bases or {}
        os_arch = f"linux/{recipe.architecture}"
        self.platform_args = {
            "TARGETPLATFORM": os_arch,
            "BUILDPLATFORM": os_arch,
            "TARGETOS": "linux",
            "BUILDOS": "linux",
            "TARGETARCH": recipe.architecture,
            "BUILDARCH": recipe.architecture,
        }

    @property
    def stage(self) -> Stage | None:
        return self.stages[-1] if self.stages else None

    def step(self, instruction: Instruction) -> Stage | None:
        """Takes one instruction into account; returns the stage that it stands in."""
        if instruction.keyword == "FROM":
            self.stages.append(self._begin(instruction))
        elif self.stage is None:
            for name, value in assignments(instruction.rest):
                default = expand(value, self.globals)
                self.globals[name] = self.recipe.build_args.get(name, default)
        else:
            self._within(self.stage, instruction)
        return self.stage

    def known_arg(self, name: str, default: str) -> str | None:
        """The value of an ``ARG`` line; ``None`` where only the builder would know one."""
        if name in self.recipe.build_args:
            return self.recipe.build_args[name]
        if default:
            return expand(default, self.stage.scope.values if self.stage else {})
        return self.globals.get(name, self.platform_args.get(name))

    def copied_from(self, instruction: Instruction) -> list[str]:
        """Images that an instruction takes files from, in full."""
        if self.stage is None:
            return []
        names = [instruction.flag("from")] if instruction.keyword in ("COPY", "ADD") else []
        if instruction.keyword == "RUN":
            names = [mount_fields(flag).get("from") for flag in instruction.flags if flag.startswith("--mount=")]
        wanted = [expand(name, self.stage.scope.values) for name in names if name]
        return [str(references.parse(name)) for name in wanted if self.find_stage(name) is None]

    def find_stage(self, name: str) -> Stage | None:
        if name.isdigit():
            return self.stages[int(name)] if int(name) < len(self.stages) else None
        return next((stage for stage in self.stages if stage.name and stage.name.lower() == name.lower()), None)

    def _begin(self, instruction: Instruction) -> Stage:
        self._check_platform(instruction)
        words = instruction.rest.split()
        if len(words) not in (1, 3) or (len(words) == 3 and words[1].upper() != "AS"):
            raise ImageFault(f"Line {instruction.line} of the Dockerfile is not FROM image [AS name].")
        known = {**self.platform_args, **self.globals}
        image, name = expand(words[0], known), words[2] if len(words) == 3 else ""
        if not image:
            raise ImageFault(f"Line {instruction.line}: {words[0]} is empty.", fix="Give the ARG a default.")
        if image == "scratch":
            return Stage(name, None, image)
        if parent := self.find_stage(image) if not image.isdigit() else None:
            scope = Scope(env=dict(parent.scope.env))
            return Stage(name, None, image, scope, parent.shell, parent.user, parent.workdir)
        full = str(references.parse(image))
        config = self._bases.get(full, ImageConfig())
        return Stage(name, full, full, Scope(env=dict(config.env)), user=config.user, workdir=config.workdir or "/")

    def _check_platform(self, instruction: Instruction) -> None:
        wanted = expand(instruction.flag("platform") or "", {**self.platform_args, **self.globals})
        if wanted and wanted.split("/")[:2] != ["linux", self.recipe.architecture]:
            raise Unsupported(f"The Dockerfile asks for {wanted}; this machine is linux/{self.recipe.architecture}.")

    def _within(self, stage: Stage, instruction: Instruction) -> None:
        match instruction.keyword:
            case "ARG":
                for name, default in assignments(instruction.rest):
                    stage.scope.args[name] = self.known_arg(name, default) or ""
            case "ENV":
                stage.scope.set_env(instruction.rest)
            case "USER":
                stage.user = expand(instruction.rest, stage.scope.values)
            case "WORKDIR":
                path = expand(instruction.rest, stage.scope.values)
                stage.workdir = path if path.startswith("/") else f"{stage.workdir.rstrip('/')}/{path}"
            case "SHELL":
                stage.shell = tuple(_json_words(instruction))
            case _:
                pass


def mount_fields(flag: str) -> dict[str, str]:
    """``--mount=type=cache,target=/x`` as names and values, with the long names."""
    aliases = {"src": "source", "dst": "target", "destination": "target"}
    pairs = (part.partition("=") for part in flag.removeprefix("--mount=").strip("\"'").split(","))
    return {aliases.get(name.lower(), name.lower()): value for name, _, value in pairs}


def _json_words(instruction: Instruction) -> Iterator[str]:
    try:
        words = json.loads(instruction.rest)
    except ValueError:
        words = None
    if not isinstance(words, list) or not words:
        raise ImageFault(f"Line {instruction.line} of the Dockerfile: SHELL takes a JSON list.")
    yield from (str(word) for word in words)


def _up_to(dockerfile: Dockerfile, target: str) -> Dockerfile:
    """Leaves out the stages after the one that was asked for."""
    count, inside, kept = -1, False, []
    for instruction in dockerfile.instructions:
        if instruction.keyword == "FROM":
            if inside:
                break
            count += 1
            words = instruction.rest.split()
            inside = target == str(count) or (words[-1].lower() == target.lower() and len(words) == 3)
        kept.append(instruction)
    if not inside:
        raise ImageFault(f"The Dockerfile has no stage {target!r}.")
    return Dockerfile(dockerfile.escape, tuple(kept))
