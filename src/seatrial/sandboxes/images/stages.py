"""Follows a Dockerfile from stage to stage: the base of each stage and its variables. Pure."""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from seatrial.errors import ImageFault, Unsupported
from seatrial.sandboxes.host.container_defaults import DEFAULT_PATH
from seatrial.sandboxes.images import references
from seatrial.sandboxes.images.dockerfile import Dockerfile, Flag, Instruction, has_odd_space, parse, shell_words
from seatrial.sandboxes.images.image import ImageConfig
from seatrial.sandboxes.images.variables import Scope, assignments

DEFAULT_SHELL = ("/bin/sh", "-c")
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_STAGE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_MOUNT_ALIASES = {"src": "source", "dst": "target", "destination": "target", "ro": "readonly", "rw": "readwrite"}


def native_architecture() -> str:
    machine = platform.machine()
    return _ARCHITECTURES.get(machine, machine)


@dataclass(frozen=True, slots=True)
class Recipe:
    """A Dockerfile with the build's arguments."""

    dockerfile: Dockerfile
    build_args: Mapping[str, str] = field(default_factory=dict)
    architecture: str = field(default_factory=native_architecture)

    @classmethod
    def read(cls, text: str, build_args: Mapping[str, str] | None = None, target: str = "") -> Recipe:
        dockerfile = parse(text)
        return cls(_up_to(dockerfile, target) if target else dockerfile, dict(build_args or {}))

    def bases(self) -> tuple[str, ...]:
        """Full references of all images that the build needs, each once and in order of use."""
        walk = Walk(self)
        found: dict[str, None] = {}
        for instruction in self.dockerfile.instructions:
            with instruction.located():
                stage = walk.step(instruction)
                named = [stage.base] if stage and stage.base and instruction.keyword == "FROM" else []
                found.update(dict.fromkeys([*named, *walk.copied_from(instruction)]))
        return tuple(found)


@dataclass(slots=True)
class Stage:
    number: int
    name: str
    """As the author wrote it."""
    base: str | None
    """Full reference of an image. ``None`` for ``scratch`` and for earlier stages."""
    parent: str
    """The resolved argument of ``FROM``."""
    scope: Scope = field(default_factory=Scope)
    shell: tuple[str, ...] = DEFAULT_SHELL
    user: str = ""
    workdir: str = "/"
    triggers: bool = False
    """Whether it has ``ONBUILD`` instructions."""

    @property
    def own_name(self) -> str:
        """The name for the builder. The author's name could be that of an image or a number."""
        return f"stage-{self.number}"


class Walk:
    """The state at one instruction after the other."""

    def __init__(self, recipe: Recipe, bases: Mapping[str, ImageConfig] | None = None) -> None:
        self.recipe = recipe
        self.stages: list[Stage] = []
        self.globals = Scope(escape=recipe.dockerfile.escape)
        self._bases = bases or {}
        self._escape = recipe.dockerfile.escape
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
        """Applies one instruction, and returns its stage."""
        if instruction.keyword == "FROM":
            self.stages.append(self._begin(instruction))
        elif self.stage is None:
            for name, value in named_values(instruction, self._escape):
                default = self.globals.value(value)
                self.globals.args[name] = self.recipe.build_args.get(name, default)
        else:
            self._within(self.stage, instruction)
        return self.stage

    def known_arg(self, name: str, default: str) -> str | None:
        """The value of an ``ARG`` line. ``None`` if only the builder would know one."""
        if name in self.recipe.build_args:
            return self.recipe.build_args[name]
        if default:
            return self.stage.scope.value(default) if self.stage else default
        return self.globals.args.get(name, self.platform_args.get(name))

    def copied_from(self, instruction: Instruction) -> list[str]:
        """Full references of the images from which an instruction copies files."""
        if self.stage is None:
            return []
        names = [instruction.flag("from")] if instruction.keyword == "COPY" else []
        if instruction.keyword == "RUN":
            mounts = (flag for flag in instruction.flags if flag.name == "mount")
            names = [mount_fields(instruction, flag).get("from") for flag in mounts]
        wanted = [self.stage.scope.expand(name) for name in names if name]
        return [str(references.parse(name)) for name in wanted if self.find_stage(name) is None]

    def find_stage(self, name: str) -> Stage | None:
        """A stage before the present one, by its name or number."""
        earlier = self.stages[:-1]
        if name.isdecimal() and name.isascii():
            if int(name) >= len(earlier):
                raise ImageFault(f"The Dockerfile names stage {name}, which is not before the place that names it.")
            return earlier[int(name)]
        return _named(earlier, name)

    def _begin(self, instruction: Instruction) -> Stage:
        known = Scope({**self.platform_args, **self.globals.args}, escape=self._escape)
        self._check_platform(instruction, known)
        words = words_of(instruction, self._escape)
        if len(words) not in (1, 3) or (len(words) == 3 and words[1].upper() != "AS"):
            raise instruction.refused("FROM has to be written as FROM image [AS name].")
        image, name = known.expand(words[0]), words[2] if len(words) == 3 else ""
        if name and not _STAGE_NAME.fullmatch(name):
            raise instruction.refused(f"{name[:40]!r} cannot be the name of a stage.")
        if not image:
            raise instruction.refused(f"{words[0]} is empty.", fix="Give the ARG a default.")
        number = len(self.stages)
        if image == "scratch":
            return Stage(number, name, None, image, Scope(env={"PATH": DEFAULT_PATH}, escape=self._escape))
        if parent := _named(self.stages, image):
            if parent.triggers:
                raise instruction.refused(f"stage {image} has ONBUILD triggers, which are not supported.")
            scope = Scope(env=dict(parent.scope.env), escape=self._escape)
            return Stage(number, name, None, parent.own_name, scope, parent.shell, parent.user, parent.workdir)
        full = str(references.parse(image))
        config = self._bases.get(full, ImageConfig())
        if config.on_build:
            raise instruction.refused(
                f"the image {references.familiar(full)} has ONBUILD triggers, which are not supported.",
                fix="Use a base without them, and write their instructions into the Dockerfile.",
            )
        scope = Scope(env={"PATH": DEFAULT_PATH, **config.env}, escape=self._escape)
        return Stage(number, name, full, full, scope, user=config.user, workdir=config.workdir or "/")

    def _check_platform(self, instruction: Instruction, known: Scope) -> None:
        wanted = known.expand(instruction.flag("platform") or "")
        if wanted and wanted.split("/")[:2] != ["linux", self.recipe.architecture]:
            raise Unsupported(f"The Dockerfile asks for {wanted}; this machine is linux/{self.recipe.architecture}.")

    def _within(self, stage: Stage, instruction: Instruction) -> None:
        match instruction.keyword:
            case "ARG":
                for name, default in named_values(instruction, self._escape):
                    stage.scope.args[name] = self.known_arg(name, default) or ""
            case "ENV":
                # Docker expands all values of a line before it sets any of them.
                pairs = named_values(instruction, self._escape)
                stage.scope.env.update({name: stage.scope.value(value) for name, value in pairs})
            case "USER":
                stage.user = stage.scope.expand(instruction.rest)
            case "WORKDIR":
                path = stage.scope.expand(instruction.rest)
                stage.workdir = path if path.startswith("/") else f"{stage.workdir.rstrip('/')}/{path}"
            case "SHELL":
                shell = json_words(instruction)
                if not shell:
                    raise instruction.refused("SHELL takes a JSON list.")
                stage.shell = tuple(shell)
            case "ONBUILD":
                stage.triggers = True
            case _:
                pass


def _named(stages: Sequence[Stage], name: str) -> Stage | None:
    matching = [stage for stage in stages if stage.name and stage.name.lower() == name.lower()]
    return matching[-1] if matching else None


def named_values(instruction: Instruction, escape: str) -> list[tuple[str, str]]:
    """Names and values of ``ARG`` and ``ENV``. The values keep their quotes."""
    words = words_of(instruction, escape)
    pairs = assignments(instruction.rest, escape)
    if instruction.keyword == "ARG":
        pairs = [(name, value) for name, _, value in (word.partition("=") for word in words)]
    for name, _ in pairs:
        if not _VARIABLE.fullmatch(name):
            raise instruction.refused(f"{name[:40]!r} cannot be the name of a variable.")
    if instruction.keyword == "ENV" and "=" in words[0] and not all("=" in word for word in words):
        raise instruction.refused("a word has no = in it.")
    return pairs


def words_of(instruction: Instruction, escape: str) -> list[str]:
    """The words as they are written, at least one. Refuses a blank that only some builders see."""
    words = shell_words(instruction.rest, escape)
    if not words:
        raise instruction.refused(f"{instruction.keyword} has no argument.")
    if any(has_odd_space(word) and not set("\"'") & set(word) for word in words):
        raise instruction.refused("a word has an unusual blank in it.", fix="Put it into quotes.")
    return words


def json_words(instruction: Instruction, *, text: str | None = None) -> list[str] | None:
    """The list of an instruction's JSON form. ``None`` for the shell form."""
    rest = instruction.rest if text is None else text
    if not rest.startswith("["):
        return None
    try:
        words, end = json.JSONDecoder().raw_decode(rest)
    except (ValueError, RecursionError):
        return None
    if rest[end:].strip() or not all(isinstance(word, str) for word in words):
        raise instruction.refused("the JSON list has something else than strings.")
    return list(words)


def mount_fields(instruction: Instruction, flag: Flag) -> dict[str, str]:
    """The fields of ``--mount=type=cache,target=/x`` by their long names."""
    found: dict[str, str] = {}
    for part in (flag.value or "").split(","):
        key, _, value = part.partition("=")
        name = _MOUNT_ALIASES.get(key.lower(), key.lower())
        if name in found:
            raise instruction.refused(f"a mount names {name} twice.")
        found[name] = value
    return found


def _up_to(dockerfile: Dockerfile, target: str) -> Dockerfile:
    """Leaves out the stages after the target."""
    count, inside, kept = -1, False, []
    for instruction in dockerfile.instructions:
        if instruction.keyword == "FROM":
            if inside:
                break
            count += 1
            words = instruction.rest.split()
            inside = target == str(count) or (len(words) == 3 and words[-1].lower() == target.lower())
        kept.append(instruction)
    if not inside:
        raise ImageFault(f"The Dockerfile has no stage {target!r}.")
    return Dockerfile(dockerfile.escape, tuple(kept))
